// The text form of each kind of input: its prefix character, the word after the colon, and whether a type follows. One
// table for the printer, the parser and the error messages.
#pragma once

#include <iterator>
#include <string_view>

#include "ir/graph.h"

namespace retrograd::inline v0::ir {

struct InputText {
  char sigil;
  std::string_view word;  // for a tensor, not in the text form, where its type stands alone
  bool has_type;
};

/// In the order of Input::Kind.
inline constexpr InputText kInputText[] = {
    {'%', "tensor", true}, {'!', "slot", true},      {'@', "leaf", true},  {'$', "hook", false},
    {'&', "box", true},    {'^', "function", false}, {'*', "pair", false}, {'~', "code", false},
};
static_assert(std::size(kInputText) == static_cast<size_t>(Input::Kind::code) + 1);

constexpr const InputText& text_of(Input::Kind kind) { return kInputText[static_cast<size_t>(kind)]; }

}  // namespace retrograd::ir
