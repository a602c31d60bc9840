"""The expressions of a function body as trees, with their positions in the file.

A root is a whole expression with a use: what is returned, what a variable is initialised with, a condition, an
expression statement. A Node has a kind and parts:
  name literal string list(parts)             call(callee, arguments)      member(object)   index(object, i)
  unary(x) binary(l, r) choice(c, a, b)       lambda(roots of its body)    group(x)
`op` is the operator, the called function's last name, or the member's name. Statements that the parser does not
know (loop headers, declarations of constants) give no roots.
"""
from cpp_functions import matching, skip_angles

LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", ">", "<=", ">="], ["<<"], ["+", "-"], ["*", "/", "%"]]
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "|=", "&="}
UNARY = {"-", "!", "+", "*", "&", "++", "--", "~"}
ROOMS = {"RowTiles", "RowReader", "RowWriter", "Scratch"}  # a declaration of a buffer does not determine its content


class Unknown(Exception):
    """A construct that this parser does not support."""


class Node:
    def __init__(self, kind, op, start, end, parts=()):
        self.kind, self.op, self.start, self.end, self.parts = kind, op, start, end, list(parts)
        self.use = ""  # of a root
        self.mutants = []


class Parser:
    """Over the tokens of one function body; `roots` collects."""

    def __init__(self, tokens):
        self.t, self.roots = tokens, []

    def text(self, i):
        return self.t[i].text if i < len(self.t) else ""

    def node(self, kind, op, first, behind, parts=()):
        return Node(kind, op, self.t[first].start, self.t[behind - 1].end, parts)

    def root(self, node, use):
        node.use = use
        self.roots.append(node)

    # ---- statements

    def block(self, i):
        """The block of the brace at i; returns the position after its end."""
        end = matching(self.t, i)
        i += 1
        while i < end:
            i = self.statement(i)
        return end + 1

    def statement(self, i):
        text = self.text(i)
        if text == "{":
            return self.block(i)
        if text == "if":
            return self.condition(i)
        if text in ("for", "while", "switch", "catch"):
            return self.statement(matching(self.t, i + 1) + 1)
        if text in ("else", "do", "try"):
            return self.statement(i + 1)
        if text in ("case", "default"):
            while self.text(i) != ":":
                i += 1
            return i + 1
        end = self.end_of(i)
        if text in ("using", "static_assert", "constexpr", "static", "throw", "break", "continue", ";") or end == i:
            return end + 1
        count = len(self.roots)
        try:
            if text == "return":
                node, behind = self.expression(i + 1)
                if behind != end:
                    raise Unknown
                self.root(node, "return")
            else:
                self.simple(i, end)
        except Unknown:
            del self.roots[count:]
        return end + 1

    def end_of(self, i):
        while self.text(i) != ";":
            i = matching(self.t, i) + 1 if self.text(i) in ("(", "[", "{") else i + 1
        return i

    def condition(self, i):
        constant = self.text(i + 1) == "constexpr"
        i += 1 + constant
        close = matching(self.t, i)
        if not constant:
            count = len(self.roots)
            try:
                node, behind = self.expression(i + 1)
                if behind == close:
                    self.root(node, "condition")
            except Unknown:
                del self.roots[count:]
        return self.statement(close + 1)

    def simple(self, i, end):
        """An expression statement, an assignment, or a declaration."""
        try:
            node, behind = self.expression(i)
            if behind == end:
                return self.root(node, "statement")
            if self.text(behind) in ASSIGNMENTS:
                right, last = self.expression(behind + 1)
                if last == end:
                    return self.root(right, "value")
        except Unknown:
            pass
        self.declaration(i, end)

    def declaration(self, i, end):
        if ROOMS & {self.text(i), self.text(i + 1)}:
            raise Unknown
        while i < end:
            text, before = self.text(i), self.text(i - 1)
            if text == "=":
                node, i = self.expression(i + 1)
                self.root(node, "value")
                if self.text(i) not in (",", ";"):
                    raise Unknown
            elif text in ("(", "{") and (before.isidentifier()):
                close = matching(self.t, i)
                for node in self.arguments(i):
                    self.root(node, "argument")
                i = close + 1
            elif text == "[":
                i = matching(self.t, i) + 1
            elif text == "<":
                behind = skip_angles(self.t, i)
                if behind == i:
                    raise Unknown
                i = behind
            elif text.isidentifier() or text in ("::", "*", "&", ",", ">"):
                i += 1
            else:
                raise Unknown

    # ---- expressions: each function returns the node and the position after it

    def expression(self, i):
        node, j = self.binary(i, 0)
        if self.text(j) != "?":
            return node, j
        yes, j = self.expression(j + 1)
        if self.text(j) != ":":
            raise Unknown
        no, j = self.expression(j + 1)
        return self.node("choice", "?", i, j, [node, yes, no]), j

    def binary(self, i, level):
        if level == len(LEVELS):
            return self.unary(i)
        left, j = self.binary(i, level + 1)
        while self.text(j) in LEVELS[level]:
            if self.text(j) == ">" and self.text(j + 1) == ">" and self.t[j].end == self.t[j + 1].start:
                raise Unknown  # a shift
            if self.text(j) == "<" and left.kind == "name" and self.text(skip_angles(self.t, j)).isidentifier():
                raise Unknown  # a declaration
            op = self.text(j)
            right, j = self.binary(j + 1, level + 1)
            left = self.node("binary", op, i, j, [left, right])
        return left, j

    def unary(self, i):
        if self.text(i) not in UNARY:
            return self.postfix(i)
        x, j = self.unary(i + 1)
        return self.node("unary", self.text(i), i, j, [x]), j

    def postfix(self, i):
        node, j = self.primary(i)
        while True:
            text = self.text(j)
            if text == "(" or (text == "{" and node.kind == "name"):
                parts, name = self.arguments(j), node.op
                close = matching(self.t, j)
                callee = Node("callee", name, node.start, self.t[j].end, node.parts if node.kind == "member" else ())
                callee.closing = self.t[close].start
                node, j = self.node("call", name, i, close + 1, [callee] + parts), close + 1
            elif text == "[":
                inner, k = self.expression(j + 1)
                if self.text(k) != "]":
                    raise Unknown
                node, j = self.node("index", "[]", i, k + 1, [node, inner]), k + 1
            elif text in (".", "->"):
                j += 1
                if self.text(j) == "template":
                    j += 1
                if not self.text(j).isidentifier():
                    raise Unknown
                name, j = self.text(j), self.behind_template(j + 1)
                node = self.node("member", name, i, j, [node])
            else:
                return node, j

    def behind_template(self, j):
        behind = skip_angles(self.t, j)
        return behind if behind > j and self.text(behind) in ("(", "{", "::", ")", ",", ".", "[", ";", "}") else j

    def primary(self, i):
        if i >= len(self.t):
            raise Unknown
        kind, text = self.t[i].kind, self.t[i].text
        if kind == "number" or text in ("true", "false"):
            return self.node("literal", text, i, i + 1), i + 1
        if kind == "string":
            return self.node("string", text, i, i + 1), i + 1
        if text == "(":
            inner, j = self.expression(i + 1)
            if self.text(j) != ")":
                raise Unknown
            return self.node("group", "()", i, j + 1, [inner]), j + 1
        if text == "{":
            return self.node("list", "{}", i, matching(self.t, i) + 1, self.arguments(i)), matching(self.t, i) + 1
        if text == "[":
            return self.function_object(i)
        if text in ("new", "throw", "const", "sizeof", "auto", "delete"):
            raise Unknown
        j = i + (text == "::") + (text == "typename")
        if self.text(j - 1) == "typename":
            text = self.text(j)
        while self.text(j).isidentifier():
            name, j = self.text(j), self.behind_template(j + 1)
            if self.text(j) != "::":
                return self.node("name", name, i, j), j
            j += 1
            if self.text(j) == "template":
                j += 1
        raise Unknown

    def arguments(self, i):
        """Those between the bracket at i and the matching one."""
        close, parts = matching(self.t, i), []
        i += 1
        while i < close:
            node, i = self.expression(i)
            parts.append(node)
            if self.text(i) == "...":
                raise Unknown
            if i < close and self.text(i) != ",":
                raise Unknown
            i += 1
        return parts

    def function_object(self, i):
        j = matching(self.t, i) + 1
        while self.text(j) != "{":
            if j >= len(self.t) or self.text(j) in (";", ")", ","):
                raise Unknown
            j = matching(self.t, j) + 1 if self.text(j) == "(" else j + 1
        outer, self.roots = self.roots, []
        behind = self.block(j)
        inner, self.roots = self.roots, outer
        return self.node("lambda", "[]", i, behind, inner), behind


def roots_of(function):
    parser = Parser(function.tokens[function.body[0]:function.body[1] + 1])
    parser.block(0)
    return parser.roots


def walk(node, root):
    """All nodes of a tree, each with the innermost root that it belongs to: bodies of lambdas have roots, too."""
    yield node, root
    for part in node.parts:
        yield from walk(part, part if part.use else root)
