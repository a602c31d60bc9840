"""The ways in which a formula is altered.

mutate(root, text, result) appends to each node of a tree the texts that may replace it. Texts that do not compile are
dropped later (building.py), so a mutation need not know types. The mutations:
  + becomes -, * becomes /, and back; a term or factor is dropped; so with add, sub, mul, div, plus
  what is returned, given, a variable's value or a branch is negated; a unary minus is dropped
  the argument of give() becomes undefined
  neighbouring arguments are swapped, unless the function is commutative; so with operands of emit
  a function is exchanged for a sibling, or replaced by its first argument (sum_to, transposes, square ...)
  a number: 2 becomes 3, 0.5 becomes 0.6, true becomes false; the operand of in(), grad(), tangent(); a named constant grows
  a comparison becomes its neighbour, a condition its opposite, the branches of ?: are swapped
"""
import re

MINUS = "::retrograd::mutation::minus"
SIBLINGS = {}
for family in [("sin", "cos"), ("sinh", "cosh"), ("exp", "expm1"), ("log", "log1p"), ("sqrt", "rsqrt"), ("tril", "triu"),
               ("Tril", "Triu"), ("lt", "le"), ("gt", "ge"), ("eq", "ne"), ("add", "sub"), ("mul", "div"), ("sum", "mean"),
               ("digamma", "lgamma"), ("scatter_add", "scatter"), ("index_add", "index_copy"), ("minimum", "maximum"),
               ("tanh", "sigmoid"), ("softmax", "log_softmax"), ("logical_and", "logical_or"),
               ("softmax_backward", "log_softmax_backward"), ("zeros_of", "ones_of"), ("Mm", "Bmm"), ("erf", "erfc")]:
    SIBLINGS.update({family[0]: family[1], family[1]: family[0]})

# The first argument can replace the call.
PASSING = {"neg", "square", "sign", "abs", "exp", "log", "log1p", "turned", "t", "transpose", "permute", "sum_to",
           "sum_over_repeats", "reduced", "restored", "averaged", "average", "project", "scaled", "rsqrt", "sqrt",
           "reciprocal", "conj", "sum", "mean", "tril", "triu", "multiply", "one_where_zero", "root_slope", "clamp",
           "pow", "reversed", "counted", "half_tril", "traces", "sum_along", "cos", "sin", "sigmoid", "tanh"}
COMMUTATIVE = {"mul", "add", "plus", "eq", "ne", "logical_and", "logical_or", "dot", "minimum", "maximum", "hypot", "inner",
               "broadcast_shapes", "row_sum", "multiply", "gcd", "min", "max", "swap"}
ZEROS = {"zeros", "zeros_of", "zero_chain", "zeros_of_operand"}
GUARD = re.compile(r"\b(needs|has_operand|defined|is_scalar)\(|::arity\b")  # of what may, or need, be computed
UNMUTATED = {"where", "fail", "fail_call", "effective_location", "describe", "to_string", "RG_ASSERT", "emplace_back"}
PARALLEL = {"parallel_for", "parallel_range"}  # the division of work changes no result
NUMBERED = {"in", "grad", "out", "tangent", "grad_or_zeros", "tangent_or_zeros"}   # numbers of operands and results
GUARDS = {"give", "needs", "has_operand", "type", "out_type", "zeros_of_operand"}
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
STRINGS = {'"trunc"': '"floor"', '"floor"': '"trunc"'}


class Writer:
    def __init__(self, text, root):
        self.text, self.root = text, root

    def of(self, node):
        return self.text[node.start:node.end]

    def put(self, node, *texts):
        have = {self.of(node)} | set(node.mutants)
        node.mutants += [t for t in dict.fromkeys(texts) if t not in have]

    def called(self, node, arguments, name=None):
        """The call with other arguments, or of another function."""
        callee = node.parts[0]
        head = self.of(callee)
        if name:
            head = re.sub(rf"\b{node.op}(?=\s*(<[^()]*>)?\s*[({{]$)", name, head)
        return head + ", ".join(arguments) + self.text[callee.closing:node.end]


def mutate(root, text, result=()):
    """`result`: the words of the function's return type."""
    w = Writer(text, root)
    if root.use == "condition" and not (root.kind == "binary" and root.op in ("==", "!=")):
        w.put(root, f"!({w.of(root)})")
    elif root.use == "return" and "&" not in result or root.use == "value":
        negate(w, root)
    visit(w, root, None)


def negate(w, node):
    if node.kind == "choice":
        for branch in node.parts[1:]:
            negate(w, branch)
    elif node.kind == "unary" and node.op == "-":
        return  # dropped below
    elif node.kind not in ("literal", "list", "lambda", "string") and node.op not in ZEROS and w.of(node) != "Tensor()":
        w.put(node, f"{MINUS}({w.of(node)})")


def visit(w, node, parent):
    if node.kind == "call" and node.op in UNMUTATED and not (node.op == "where" and len(node.parts) == 4):
        return
    handler = HANDLERS.get(node.kind)
    if handler:
        handler(w, node, parent)
    for part in node.parts:
        if node.kind == "call" and node.op in PARALLEL and part.kind != "lambda":
            continue
        if part.kind == "callee":
            for below in part.parts:
                visit(w, below, part)
        elif node.kind == "lambda":
            mutate(part, w.text)
        else:
            visit(w, part, node)


def binary(w, node, _):
    left, right = w.of(node.parts[0]), w.of(node.parts[1])
    if node.op in COMPARISONS:
        if not GUARD.search(left):
            w.put(node, f"({left}) {COMPARISONS[node.op]} ({right})")
        return
    if node.op in ("&&", "||"):
        # Without a guard of && more is computed than necessary.
        return w.put(node, *(kept for kept, other in ((left, right), (right, left))
                             if node.op == "||" or not GUARD.search(other)))
    if node.op in ("&", "|"):
        return w.put(node, f"({left}) {'|' if node.op == '&' else '&'} ({right})", left, right)
    other = {"+": "-", "-": "+", "*": "/", "/": "*"}.get(node.op)
    if other:
        alone = f"{MINUS}({right})" if node.op == "-" else right
        w.put(node, f"({left}) {other} ({right})", left, alone)


def unary(w, node, parent):
    if node.op == "-" and not (parent and parent.kind == "call" and parent.op in ("where",)):
        w.put(node, w.of(node.parts[0]))


def choice(w, node, _):
    condition, yes, no = (w.of(p) for p in node.parts)
    if node.parts[0].op not in ("==", "!="):  # those are changed themselves
        w.put(node, f"({condition}) ? ({no}) : ({yes})")
    guard = GUARD.search(condition)
    w.put(node, *([yes, no] if not guard else [yes] if guard[0] == "::arity" else [no]))


def literal(w, node, parent):
    text = node.op
    if parent and parent.kind == "call" and parent.op in GUARDS and node in parent.parts[1:]:
        return
    if parent and parent.kind == "index":
        return index(w, node, parent.parts[0])
    if text in ("true", "false"):
        return w.put(node, "false" if text == "true" else "true")
    if re.fullmatch(r"\d+", text):
        value = int(text)
        w.put(node, str(value + 1))
        if parent and parent.kind == "call" and parent.op in NUMBERED and value > 0:
            w.put(node, str(value - 1))
    elif re.fullmatch(r"[\d.]+(e[+-]?\d+)?f?", text):
        suffix = "f" if text.endswith("f") else ""
        w.put(node, f"{float(text.rstrip('f')) * 1.2 or 1.0}{suffix}")


def index(w, node, indexed):
    """Another index that is not out of range: of the same statement, or of an operand before."""
    name = re.escape(w.of(indexed))
    w.put(node, *re.findall(rf"(?<!\w){name}\[(\d+)\]", w.of(w.root)))
    if indexed.op == "operands" and node.op.isdigit() and int(node.op) > 0:
        w.put(node, str(int(node.op) - 1))


def string(w, node, _):
    if node.op in STRINGS:
        w.put(node, STRINGS[node.op])


def name(w, node, parent):
    if re.fullmatch(r"k[A-Z]\w*", node.op) and not (parent and parent.kind == "callee"):
        w.put(node, f"{MINUS}({w.of(node)})" if "Infinity" in node.op else f"({w.of(node)} * 1.1)")


def swapped(parts, i):
    parts = list(parts)
    parts[i], parts[i + 1] = parts[i + 1], parts[i]
    return parts


def call(w, node, _):
    arguments = node.parts[1:]
    texts = [w.of(a) for a in arguments]
    if node.op == "give":
        if len(arguments) == 2:
            w.put(arguments[1], "::retrograd::Tensor()")
            negate(w, arguments[1])
        return
    if node.op in SIBLINGS:
        w.put(node, w.called(node, texts, SIBLINGS[node.op]))
    template = re.search(r"<(\w+)>\($", w.of(node.parts[0]))
    if template and template[1] in SIBLINGS:
        head = w.of(node.parts[0])[:template.start()]
        w.put(node, f"{head}<{SIBLINGS[template[1]]}>({', '.join(texts)})")
    if node.op in ("add", "sub", "mul", "div", "plus") and len(texts) >= 2:
        w.put(node, texts[0], f"{MINUS}({texts[1]})" if node.op == "sub" else texts[1])
        if node.op == "plus":
            w.put(node, w.called(node, [texts[0], f"{MINUS}({texts[1]})"]))
    elif node.op in PASSING and texts:
        w.put(node, texts[0])
    elif node.op in PASSING and not texts and node.parts[0].parts:
        w.put(node, w.of(node.parts[0].parts[0]))
    if node.op not in COMMUTATIVE and not (node.op == "clamp" and len(texts) == 2):
        for i in range(min(len(texts) - 1, 3)):
            if any(a.kind in ("list", "lambda") or re.search(r"\bwhere(\(\)|_)?$", w.of(a)) for a in arguments[i:i + 2]):
                continue
            if node.op == "transpose" and i > 0:
                continue  # of two dims
            w.put(node, w.called(node, swapped(texts, i)))
    if node.op in ("emit", "run") and arguments and arguments[0].kind == "list":
        parts = [w.of(p) for p in arguments[0].parts]
        for i in range(len(parts) - 1):
            w.put(node, w.called(node, ["{" + ", ".join(swapped(parts, i)) + "}"] + texts[1:]))


def listed(w, node, parent):
    """Operands of a call that is made by hand: each becomes its neighbour."""
    if parent is None and not any(p.kind in ("literal", "list") for p in node.parts):
        for one, other in zip(node.parts, node.parts[1:]):
            w.put(one, w.of(other))
            w.put(other, w.of(one))


HANDLERS = {"binary": binary, "unary": unary, "choice": choice, "literal": literal, "string": string, "name": name,
            "call": call, "list": listed}

