"""Finds the functions of a C++ file and picks those that are derivative formulas.

No compiler is needed: tokens, matching brackets, and a walk over namespaces, classes and function heads suffice for
this library's style (clang-format, no macros around definitions). A function is identified by its name, the class
it belongs to (in the class body or by Class::name), its namespaces, its return type and the tokens of its body.

Formulas are the members vjp, jvp, chain, transpose and curvature, `backward` (the fused gradients of
ops/activations.h), `fwd` of ops whose name ends in Backward, and the functions they call: those of the namespace
retrograd::ops, and those in ALSO. Type rules, layouts and functions that give shapes or dtypes are not formulas.
Kernels that KERNELS names are formulas, too: those that are only used for derivatives.
"""
import re
from dataclasses import dataclass

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<number>(?:0x[0-9a-fA-F.']+(?:p[+-]?\d+)?|(?:\d[\d']*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\w*)|(?P<name>[A-Za-z_]\w*)
    |(?P<op>::|->|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%|&^]=|<<|\.\.\.|[^\s\w])""",
    re.VERBOSE | re.DOTALL | re.MULTILINE)

FORMULAS = {"vjp", "jvp", "chain", "transpose", "curvature"}
ALSO = {("ops/shape_ops.cc", "sum_to"), ("ops/elementwise.cc", "bilinear_jvp"), ("ops/op.h", "transpose_vjp")}
# By name, or by Class::name. The kernels of activations are made of `backward` in ops/activations.h.
KERNELS = {
    "cpu/kernels/attention.cc": {"Backward::block"},
    "cpu/kernels/class_losses.cc": {"nll_backward_kernel", "cross_entropy_backward_kernel"},
    "cpu/kernels/cofactor.cc": {"derivative_of", "Decomposition::inward"},
    "cpu/kernels/convolution.cc": {"transposed", "transpose_kernel", "weight_kernel"},
    "cpu/kernels/index_entries.cc": {"add_entries", "index_select_backward", "embedding_backward"},
    "cpu/kernels/interpolate.cc": {"interpolate_backward"},
    "cpu/kernels/norms.cc": {"Backward::rows"},
    "cpu/kernels/pooling.cc": {"add_at_places", "turn", "average_backward"},
    "cpu/kernels/levels/attention_rows.cc": {"gradients"},
    "cpu/kernels/levels/softmax_norm_rows.cc": {"softmax_backward", "log_softmax_backward", "NormalizeBackward::dx_row",
                                                "NormalizeBackward::affine", "NormalizeBackward::plain", "scaled_softmax"},
    "cpu/kernels/windows.cc": {"transposed"},
}
NOT_FORMULAS = {"infer", "layout", "saves_for", "visit", "run_on_host"}
OTHER_RESULTS = {"Shape", "Dim", "IntList", "IntArray", "bool", "int", "int64_t", "double", "SaveSet", "ScalarType",
                 "TensorType", "size_t", "OpInfo", "string_view", "TensorImpl"}
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


@dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int


def tokens_of(text):
    found = [Token(m.lastgroup, m.group(), m.start(), m.end()) for m in TOKEN.finditer(text)]
    return [t for t in found if t.kind not in ("comment", "directive")]


def matching(tokens, i):
    """The index of the bracket that closes the one at i."""
    depth = 0
    for j in range(i, len(tokens)):
        if tokens[j].kind != "op":
            continue
        if tokens[j].text in OPENING:
            depth += 1
        elif tokens[j].text in CLOSING:
            depth -= 1
            if depth == 0:
                return j
    raise ValueError("a bracket is not closed")


def skip_angles(tokens, i, surely=False):
    """The position after the template arguments that begin at i, or i if there are none. `surely`: there are some."""
    if i >= len(tokens) or tokens[i].text != "<":
        return i
    depth = 0
    for j in range(i, min(i + 60, len(tokens))):
        t = tokens[j]
        depth += (t.text == "<") - (t.text == ">")
        if depth == 0:
            return j + 1
        if not surely and t.kind == "op" and t.text not in ("<", ">", "::", ",", "*", "&"):
            return i
    return i


@dataclass
class Function:
    file: str
    name: str
    owner: str       # the class, or ""
    spaces: tuple    # names of the namespaces around it
    result: list     # words of the return type
    head: list       # all tokens before the body
    body: tuple      # first and last token index, both braces
    tokens: list     # of the file

    def label(self):
        return f"{self.owner}::{self.name}" if self.owner else self.name

    def words(self):
        return {t.text for t in self.tokens[self.body[0]:self.body[1]] if t.kind == "name"}


def functions_of(file, tokens):
    found = []
    scan(file, tokens, 0, len(tokens), (), "", found)
    return found


def scan(file, tokens, i, end, spaces, owner, found):
    start = i
    while i < end:
        text = tokens[i].text
        if text == ";" or (text == ":" and tokens[i - 1].text in ("public", "private", "protected")):
            start = i = i + 1
        elif text in ("(", "["):
            i = matching(tokens, i) + 1
        elif text == "{":
            close = matching(tokens, i)
            if i and tokens[i - 1].kind == "name" and is_member_initialiser(tokens[start:i]):
                i = close + 1
                continue
            enter(file, tokens, start, i, close, spaces, owner, found)
            i = close + 1
            if any(t.text == "=" for t in outside_brackets(tokens[start:i - 1])):
                continue  # an initialiser extends to its semicolon
            start = i
        else:
            i += 1


def outside_brackets(head):
    depth, kept = 0, []
    for t in head:
        if t.text in OPENING:
            depth += 1
        if depth == 0:
            kept.append(t)
        if t.text in CLOSING:
            depth -= 1
    return kept


def is_member_initialiser(head):
    outer = [t.text for t in outside_brackets(head)]
    return ":" in outer and "(" in [t.text for t in head]


def enter(file, tokens, start, brace, close, spaces, owner, found):
    head = tokens[start:brace]
    outer = [t.text for t in outside_brackets(head)]
    if "namespace" in outer:
        name = "".join(t.text for t in head[1:] if t.text != "namespace")
        names = [n for n in name.split("::") if not n.startswith("inline")]  # retrograd::inline v0::ops
        scan(file, tokens, brace + 1, close, spaces + tuple(names), owner, found)
    elif "enum" in outer or "concept" in outer or "=" in outer:
        return
    elif ("struct" in outer or "class" in outer) and (brace == start or not any(t.text == "(" for t in head)):
        words = [t.text for t in head]
        key = "struct" if "struct" in words else "class"
        name = words[len(words) - 1 - words[::-1].index(key) + 1]
        scan(file, tokens, brace + 1, close, spaces, name, found)
    else:
        function = function_of(file, tokens, start, brace, close, spaces, owner)
        if function:
            found.append(function)


def function_of(file, tokens, start, brace, close, spaces, owner):
    i = start
    while tokens[i].text == "template":
        i = skip_angles(tokens, i + 1, surely=True)
    if tokens[i].text == "requires" and tokens[i + 1].text == "(":
        i = matching(tokens, i + 1) + 1
    paren = next((j for j in range(i, brace) if tokens[j].text == "("), None)
    if paren is None or tokens[paren - 1].kind != "name":
        return None
    name, before = tokens[paren - 1].text, paren - 1
    if before - 1 >= i and tokens[before - 1].text == "::":
        j = before - 2
        while tokens[j].text != "<" and tokens[before - 2].text == ">":
            j -= 1  # Class<V>::name
        j -= tokens[j].text == "<"
        owner, before = tokens[j].text, j
    result = [t.text for t in tokens[i:before]]
    return Function(file, name, owner, spaces, result, tokens[start:brace], (brace, close), tokens)


def formulas_of(functions):
    """Those of the functions, of all files, that are derivative formulas or called by one in ops/."""
    chosen = [f for f in functions if is_formula(f) or (f.file, f.name) in ALSO]
    by_name = {}
    for f in functions:
        if may_be_called(f):
            by_name.setdefault(f.name, []).append(f)
    seen = {id(f) for f in chosen}
    waiting = list(chosen)
    while waiting:
        f = waiting.pop()
        for word in f.words():
            for callee in by_name.get(word, []):
                local = callee.file == f.file or callee.file.endswith(".h") or "" not in callee.spaces
                if local and id(callee) not in seen:
                    seen.add(id(callee))
                    chosen.append(callee)
                    waiting.append(callee)
    chosen += [f for f in functions if f.label() in KERNELS.get(f.file, ())]
    return sorted(chosen, key=lambda f: (f.file, f.body[0]))


def is_formula(f):
    if "ops" not in f.spaces:
        return False
    if f.name == "backward":
        return f.owner != ""
    if f.name == "fwd":
        return f.owner.endswith("Backward")
    return f.name in FORMULAS and f.owner != ""


def may_be_called(f):
    if f.name in NOT_FORMULAS or f.owner == "Point" or f.name == "fwd" or "ops" not in f.spaces or f.name.startswith("check"):
        return False
    if f.name in ("emit", "info", "make_op_info", "prepare", "compute_dtype", "set_derivative"):
        return False
    return not OTHER_RESULTS.intersection(f.result)
