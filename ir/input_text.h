// How each kind of input is written: its sigil, the word behind the colon, and whether a type follows. One
// table for the printer, the parser and the texts of errors.
#pragma once

#include "ir/graph.h"

namespace retrograd::ir {

struct InputText {
  char sigil;
  std::string_view word;  // of a tensor, only for errors: its type stands alone
  bool has_type;
};

/// In the order of Input::Kind.
inline constexpr InputText kInputText[] = {
    {'%', "tensor", true}, {'!', "slot", true},      {'@', "leaf", true},  {'$', "hook", false},
    {'&', "box", true},    {'^', "function", false}, {'*', "pair", false},
};

constexpr const InputText& text_of(Input::Kind kind) { return kInputText[static_cast<size_t>(kind)]; }

}  // namespace retrograd::ir
