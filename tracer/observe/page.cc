// See tracer/observe/page.h. The style and the script of all pages are in tracer/observe/page_parts.h. Rows carry the
// data for the script: data-n the node's number, data-m the names of the values that it makes, data-u of those that
// it uses; each name in a text is a <b data-v>.
#include "tracer/observe/page.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include <fmt/format.h>

#include "engine/bookkeeping.h"
#include "ir/input_text.h"
#include "ir/text.h"
#include "tracer/observe/drawing.h"
#include "tracer/observe/page_parts.h"
#include "tracer/observe/page_timeline.h"

namespace retrograd::inline v0 {
namespace {

using drawing::escaped;
using page_parts::kind_of;
using page_parts::time_text;

// The text form with each name of a value or handle as a <b data-v>. A name is at the beginning or after a blank; the
// same characters inside expressions are not names.
std::string linked(std::string_view text) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    while (end < text.size() && is_word(text[end])) ++end;
    const bool is_name = std::string_view("%!@$&^").find(text[i]) != std::string_view::npos && end > i + 1 &&
                         (i == 0 || text[i - 1] == ' ');
    if (!is_name) end = i + 1;
    const std::string piece = escaped(text.substr(i, end - i));
    out += is_name ? fmt::format("<b data-v=\"{0}\">{0}</b>", piece) : piece;
    i = end;
  }
  return out;
}

class Page {
 public:
  Page(const ir::Graph& graph, const Profile* profile, const MemoryReport* memory)
      : graph_(graph), memory_(memory), times_(graph.nodes().size()) {
    if (profile)
      for (const Profile::Run& r : profile->runs())
        if (r.graph.get() == &graph && r.end) runs_.push_back(&r);
    for (const Profile::Run* r : runs_)
      for (const Profile::Step& s : r->steps)
        if (s.end && !s.frees)
          times_[s.node] += static_cast<double>(s.end - s.begin) / static_cast<double>(runs_.size());
    if (!times_.empty()) longest_ = std::ranges::max(times_);
  }

  std::string text() const {
    const std::string name = escaped(graph_.name);
    std::string rows;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) rows += row(n);
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>retrograd: "
        "{}</title>\n<style>{}</style>\n</head>\n"
        "<body>\n<header>{}<h1>@{}</h1><small>{}</small>{}</header>\n<main>\n{}<div "
        "class=\"inputs\">{}</div>\n<table>\n{}</table>\n</main>\n"
        "<footer>{}</footer>\n<script>{}</script>\n</body>\n</html>\n",
        name, page_parts::kStyle, kLegend, name, summary(),
        runs_.empty() ? "" : page_parts::timeline(*runs_.back()),
        memory_ ? fmt::format("<div class=\"plans\">{}</div>\n", memory_->svg()) : "", inputs(), rows,
        outputs(), page_parts::kScript);
  }

 private:
  static constexpr std::string_view kLegend =
      "<small class=\"legend\"><i class=\"unpack\"></i>unpack<i class=\"hook\"></i>hook<i "
      "class=\"leaf\"></i>to a leaf<i class=\"op\"></i>other</small>";

  std::string summary() const {
    const auto of = [](auto count, std::string_view what) {
      return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
    };
    const auto of_kind = [&](std::string_view kind) {
      return of(std::ranges::count(graph_.nodes(), kind, kind_of), kind);
    };
    std::string text = fmt::format("{}, {}, {}, {}", of(graph_.nodes().size(), "node"), of_kind("unpack"),
                                   of_kind("hook"), of(graph_.inputs().size(), "input"));
    if (!runs_.empty())
      text += fmt::format("; {}, {} in nodes on average", of(runs_.size(), "run"),
                          time_text(std::reduce(times_.begin(), times_.end())));
    return text;
  }

  // The name of a handle in the text form, or the value of a tensor input.
  std::string input_name(const ir::Input& input) const {
    if (input.kind == ir::Input::Kind::tensor) return fmt::format("%{}", graph_.number_of(input.value));
    return ir::text_of(input.kind).sigil + graph_.name_of(input);
  }

  // The bracketed part of the head of the text form: symbols with their values at capture, and guards.
  std::string sizes() const {
    const std::string text = graph_.print();
    const size_t begin = std::string_view("graph @").size() + graph_.name.size();
    if (text[begin] != '[') return "";
    return fmt::format("<code class=\"note\">{}</code>\n",
                       escaped(text.substr(begin + 1, text.find("](", begin) - begin - 1)));
  }

  std::string inputs() const {
    std::string text = sizes();
    for (const ir::Input& input : graph_.inputs()) {
      const std::string name = escaped(input_name(input));
      const ir::InputText& kind = ir::text_of(input.kind);
      text += fmt::format("<code data-m=\"{0}\"><b data-v=\"{0}\">{0}</b>: {1}{2}</code>\n", name, kind.word,
                          kind.has_type ? " " + escaped(to_string(graph_.type(input))) : "");
    }
    return text;
  }

  std::string outputs() const {
    std::string text;
    for (ir::ValueId v : graph_.outputs())
      text += (text.empty() ? "gives " : ", ") +
              (v == ir::kNoValue ? "none" : fmt::format("<b data-v=\"%{0}\">%{0}</b>", v));
    return text;
  }

  std::string row(size_t n) const {
    const ir::Node& node = graph_.nodes()[n];
    std::string makes, uses;
    for (int i = 0; i < node.results; ++i)
      makes += fmt::format("{}%{}", i ? " " : "", graph_.number_of(node.first_result + i));
    if (node.handle >= 0) uses = escaped(input_name(graph_.inputs()[static_cast<size_t>(node.handle)]));
    for (ir::ValueId v : graph_.operands(node))
      if (v != ir::kNoValue) uses += fmt::format("{}%{}", uses.empty() ? "" : " ", graph_.number_of(v));
    const ir::Origin* origin = node.origin >= 0 ? &graph_.origin(node.origin) : nullptr;
    const std::string_view kind = kind_of(node);
    std::string text = fmt::format(
        "<tr data-n=\"{0}\" data-m=\"{1}\" data-u=\"{2}\"{3}><td>{0}</td><td>{4}</td><td>{5}</td>", n, makes,
        uses, begins_record(n) ? " class=\"first\"" : "",
        kind == "op" ? "" : fmt::format("<span class=\"kind {0}\">{0}</span>", kind),
        linked(ir::to_string(graph_, node)));
    text +=
        fmt::format("<td class=\"note\">{}</td><td class=\"note\">{}</td>",
                    origin ? escaped(fmt::format("{}#{} {}", origin->op, origin->ordinal, origin->part)) : "",
                    node.where ? escaped(to_string(node.where)) : "");
    if (!runs_.empty())
      text += fmt::format("<td class=\"time\">{}</td><td class=\"bar\" style=\"--share:{:.1f}%\"></td>",
                          node_time(n), longest_ > 0 ? 100 * times_[n] / longest_ : 0);
    return text + "</tr>\n";
  }

  // A plan folds an unpack into the node that uses its value. Other nodes have no time if the run was left earlier.
  std::string node_time(size_t n) const {
    if (times_[n] > 0) return time_text(times_[n]);
    return graph_.nodes()[n].op == &ops::unpack && n + 1 < times_.size() && times_[n + 1] > 0 ? "in next"
                                                                                              : "-";
  }

  // The first node of a record's or leaf's part of the backward.
  bool begins_record(size_t n) const {
    const auto record = [&](size_t at) {
      const int32_t origin = graph_.nodes()[at].origin;
      return origin < 0 ? int64_t{-1} : int64_t{graph_.origin(origin).ordinal};
    };
    return n > 0 && record(n) != record(n - 1);
  }

  const ir::Graph& graph_;
  const MemoryReport* const memory_;
  std::vector<const Profile::Run*> runs_;
  std::vector<double> times_;  // of each node: the mean of the runs
  double longest_ = 0;
};

}  // namespace

std::string html_page(const ir::Graph& graph, const Profile* profile, const MemoryReport* memory) {
  SymbolTable::Scope scope(const_cast<SymbolTable*>(&graph.symbols));  // for the texts of sizes
  return Page(graph, profile, memory).text();
}

}  // namespace retrograd
