// See tracer/plan/plan_cache.h. Order: the question (question_of), find_or_make(). The folder is in
// io/private_folder.h, the text of an entry in io/cache_entry.h.
#include "tracer/plan/plan_cache.h"

#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "engine/each_field.h"
#include "engine/error.h"
#include "engine/never_destroyed.h"
#include "io/cache_entry.h"
#include "io/private_folder.h"
#include "ir/text.h"
#include "ops/all_ops.h"

namespace retrograd::inline v0::plan_cache {
namespace {

constexpr std::string_view kMagic = "retrograd plan cache 1\n";
constexpr std::string_view kEnding = ".plan";  // of file names

struct State {
  std::mutex mutex;
  std::optional<std::string> folder;  // not set: the folder of the environment variable
  Stats stats;
  std::string last_warning;

  void unload() noexcept {
    std::lock_guard lock(mutex);
    folder.reset();
    std::string().swap(last_warning);
  }
};

State& state() { return retrograd::detail::never_destroyed<State>(); }

void count(int64_t Stats::*counter) {
  std::lock_guard lock(state().mutex);
  ++(state().stats.*counter);
}

void warn(const std::string& what) {
  {
    std::lock_guard lock(state().mutex);
    state().last_warning = what;
  }
  std::fputs(fmt::format("[retrograd] plan cache: {}\n", what).c_str(), stderr);
}

// ---- the question -------------------------------------------------------------------------------------------------

// Identifies the file that contains this code: the program, or a shared library.
std::string build_of_this_code() {
  struct Search {
    uintptr_t address;
    std::string path;
  } search{reinterpret_cast<uintptr_t>(&build_of_this_code), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto& part = object->dlpi_phdr[i];
          const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
          if (part.p_type != PT_LOAD || s.address < begin || s.address >= begin + part.p_memsz) continue;
          s.path = *object->dlpi_name ? object->dlpi_name : "/proc/self/exe";
          return 1;
        }
        return 0;
      },
      &search);
  struct stat file;
  if (search.path.empty() || ::stat(search.path.c_str(), &file) != 0) return {};
  return fmt::format("{} bytes of {}.{:09}", file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
}

const std::string& build() {
  static const std::string text = build_of_this_code();
  return text;
}

// The text of a graph with the kinds of its symbols in place of their values.
std::string text_without_values(const ir::Graph& graph) {
  std::string text = graph.print();
  if (graph.symbols.symbol_count() == 0) return text;
  std::string kinds;
  for (int32_t id = 0; id < graph.symbols.size(); ++id)
    if (const SymbolTable::Expr& e = graph.symbols.expr(id); e.op == Arith::symbol)
      kinds += fmt::format("{} {}, ", graph.symbols.text(id), static_cast<int>(e.hint.kind));
  const size_t begin = text.find('[') + 1;
  return text.replace(begin, text.find_first_of(";]", begin) - begin, kinds);
}

std::string question_of(const ir::Graph& recorded, std::string_view settings) {
  return fmt::format("build: {}\n{}\n{}", build(), settings, text_without_values(recorded));
}

// Whether the text of the graph defines it completely.
bool can_be_kept(const ir::Graph& graph) {
  return std::ranges::all_of(graph.nodes(),
                             [](const ir::Node& n) { return ops::find_op(n.op->name) == n.op; });
}

bool same_interface(const ir::Graph& a, const ir::Graph& b) {
  const auto same_input = [&](const ir::Input& x, const ir::Input& y) {
    return x.kind == y.kind && ir::same_type(a.type(x), b.type(y));
  };
  const auto same_output = [&](ir::ValueId x, ir::ValueId y) {
    return (x == ir::kNoValue) == (y == ir::kNoValue) &&
           (x == ir::kNoValue || ir::same_type(a.type(x), b.type(y)));
  };
  return a.name == b.name && std::ranges::equal(a.inputs(), b.inputs(), same_input) &&
         std::ranges::equal(a.outputs(), b.outputs(), same_output);
}

// A size that depends on a number (a learning rate, a position in a random stream) would differ in another run.
bool has_symbolic_sizes(const ir::Graph& graph) {
  bool found = std::ranges::any_of(graph.types(), [](const TensorType& t) { return t.shape.is_symbolic(); });
  for (const ir::Node& node : graph.nodes())
    ir::for_each_field(*node.op, node.attrs,
                       ir::Fields{[&](auto, Dim& d) { found |= d.is_symbolic(); },
                                  [&](auto, Shape& s) { found |= s.is_symbolic(); }});
  return found;
}

// Throws Error if the answer is not a graph with the inputs and outputs of the recorded one. The nodes are checked
// while they are parsed: ir/parse.cc.
ir::Graph graph_of(std::string_view answer, const ir::Graph& recorded) {
  ir::Graph graph = ir::parse(answer, ops::find_op, recorded.symbols);
  if (!same_interface(graph, recorded))
    throw Error(Category::bad_argument, "its graph has other inputs or outputs");
  if (has_symbolic_sizes(graph) && !has_symbolic_sizes(recorded))
    throw Error(Category::bad_argument, "its graph has sizes that depend on numbers of the run");
  return graph;
}

// ---- asking -------------------------------------------------------------------------------------------------------

// The answer in the folder, or none; warns about an invalid one.
std::optional<ir::Graph> find(const io::PrivateFolder& folder, const std::string& name,
                              const std::string& question, const ir::Graph& recorded) {
  std::string problem;
  const std::optional<std::string> entry = folder.read(name, problem);
  if (!entry && problem.empty()) return count(&Stats::misses), std::nullopt;
  try {
    if (entry) {
      const io::CachedAnswer answer = io::cached_answer(*entry, kMagic, question);
      if (answer.problem.empty()) {
        ir::Graph graph = graph_of(answer.text, recorded);
        count(&Stats::hits);
        return graph;
      }
      problem = answer.problem;
    }
  } catch (const Exception& e) {
    problem = e.what();
  }
  count(&Stats::rejected);
  warn(fmt::format("{} is not used: {}", folder.path_of(name), problem));
  return {};
}

}  // namespace

void set_folder(std::string_view folder) {
  std::lock_guard lock(state().mutex);
  state().folder = folder;
}

std::string folder() {
  std::lock_guard lock(state().mutex);
  if (!state().folder) {
    const char* named = secure_getenv(kFolderVariable);
    state().folder = named ? named : "";
  }
  return *state().folder;
}

Stats stats() {
  std::lock_guard lock(state().mutex);
  return state().stats;
}

std::string last_warning() {
  std::lock_guard lock(state().mutex);
  return state().last_warning;
}

ir::Graph find_or_make(const ir::Graph& recorded, std::string_view settings,
                       const std::function<ir::Graph()>& make) {
  const std::string path = folder();
  if (path.empty()) return make();
  if (!can_be_kept(recorded)) return count(&Stats::skipped), make();
  const io::PrivateFolder folder(path);
  if (const std::string problem = folder.problem(); !problem.empty() || build().empty()) {
    warn(fmt::format("{} is not used: {}", path,
                     problem.empty() ? "this build cannot be identified" : problem));
    count(&Stats::failed);
    return make();
  }
  const std::string question = question_of(recorded, settings);
  const std::string name = io::digest(question) + std::string(kEnding);
  if (std::optional<ir::Graph> found = find(folder, name, question, recorded)) return std::move(*found);
  ir::Graph made = make();
  if (folder.write(name, io::cache_entry(kMagic, question, made.print()))) {
    count(&Stats::stored);
    folder.tidy(kEnding, kEntries);
  } else {
    warn(fmt::format("{} cannot be written: {}", folder.path_of(name), std::strerror(errno)));
    count(&Stats::failed);
  }
  return made;
}

}  // namespace retrograd::plan_cache
