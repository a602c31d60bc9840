// See shrink.h.
#include "tests/fuzz/shrink.h"

#include <algorithm>

namespace fuzz {
namespace {

class Shrinker {
 public:
  Shrinker(const Program& program, const Fault& fault)
      : best_(program), fault_(fault), wanted_(fault(program)) {}

  Program run() {
    do {
      smaller_ = false;
      delete_steps();
      bypass_steps();
      delete_operands();
    } while (smaller_);
    shrink_sizes();
    return best_;
  }

 private:
  bool accept(const Program& tried) {
    if (fault_(tried) != wanted_) return false;
    best_ = tried;
    return smaller_ = true;
  }

  // Ranges of steps, from the end, of half the length each time.
  void delete_steps() {
    for (size_t length = std::max<size_t>(best_.steps.size() / 2, 1); length > 0; length /= 2)
      for (size_t end = best_.steps.size(); end > 0; end = end > length ? end - length : 0) {
        Program tried = best_;
        const size_t begin = end > length ? end - length : 0;
        tried.steps.erase(tried.steps.begin() + static_cast<std::ptrdiff_t>(begin),
                          tried.steps.begin() + static_cast<std::ptrdiff_t>(end));
        accept(tried);
      }
  }

  // A step without whom its users get its first operand.
  void bypass_steps() {
    for (size_t s = best_.steps.size(); s-- > 0;) {
      if (best_.steps[s].operands.empty()) continue;
      Program tried = best_;
      const Step gone = tried.steps[s];
      tried.steps.erase(tried.steps.begin() + static_cast<std::ptrdiff_t>(s));
      for (Step& user : tried.steps)
        for (auto list : {&Step::operands, &Step::inputs})
          for (Ref& ref : user.*list)
            if (ref.step == gone.id) ref = gone.operands[0];
      accept(tried);
    }
  }

  void delete_operands() {
    for (size_t s = 0; s < best_.steps.size(); ++s)
      for (auto list : {&Step::operands, &Step::inputs})
        for (size_t k = (best_.steps[s].*list).size(); k-- > 0;) {
          Program tried = best_;
          std::vector<Ref>& refs = tried.steps[s].*list;
          refs.erase(refs.begin() + static_cast<std::ptrdiff_t>(k));
          accept(tried);
        }
  }

  void shrink_sizes() {
    for (size_t i = 0; i < best_.palette.size(); ++i)
      for (int64_t size = 1; size < best_.palette[i]; ++size) {
        Program tried = best_;
        tried.palette[i] = size;
        if (accept(tried)) break;
      }
  }

  Program best_;
  const Fault& fault_;
  std::string wanted_;
  bool smaller_ = false;
};

}  // namespace

Program shrunk(const Program& program, const Fault& fault) { return Shrinker(program, fault).run(); }

}  // namespace fuzz
