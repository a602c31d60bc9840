"""Runs statements of a conformance program (../suites/FORMAT.md) with PyTorch.

A refusal of PyTorch is returned as a category of the format. This has the ops that programs about views and
in-place writes need; an op is a line in OPS. Ops with an underscore are methods of PyTorch's Tensor.
"""

import re

import torch

DTYPES = {torch.float64: ("float64", "F64"), torch.float32: ("float32", "F32"), torch.int64: ("int64", "I64"),
          torch.bool: ("bool", "BOOL")}

# Categories of PyTorch's messages; the first match counts; further categories are equally right.
ERRORS = [
    (r"leaf Variable that requires grad", "leaf_inplace"),
    (r"output of a function that returns multiple views|created in no_grad mode|inside no_grad mode|"
     r"created inside a custom", "view_inplace_forbidden"),
    (r"modified by an inplace operation", "version_mismatch"),
    (r"backward through the graph a second time", "backward_twice_freed"),
    (r"refers to a single memory location|refer to a single memory location", "overlapping_write"),
    (r"view size is not compatible", "view_incompatible", "shape_mismatch"),
    (r"does not require grad and does not have a grad_fn|One of the differentiated Tensors does not require grad",
     "no_grad_fn"),
    (r"not have been used in the graph", "unused_input"),
    (r"change requires_grad flags of leaf|only Tensors of floating point", "requires_grad_forbidden"),
    (r"can't be cast to the desired output type|can't be cast to", "dtype_mismatch"),
    (r"shape mismatch|doesn't match the broadcast shape|must match the size|expanded size of the tensor|"
     r"must match the existing size|is invalid for input of size|expanded from", "shape_mismatch"),
]


def category(error):
    """The categories of an exception, or None for one that the programs should not cause."""
    for pattern, *categories in ERRORS:
        if re.search(pattern, str(error)):
            return categories
    return None


def is_leaf(t):
    """None if PyTorch refuses to answer: a view made under no_grad whose base was written to since."""
    try:
        return t is None or t.is_leaf
    except RuntimeError:
        return None


def nodes(roots):
    """The nodes of PyTorch's graph that lead to these tensors."""
    pending, seen = [t.grad_fn for t in roots if is_leaf(t) is False], set()
    while pending:
        node = pending.pop()
        if node is not None and node not in seen:
            seen.add(node)
            pending += [n for n, _ in node.next_functions]
    return seen


def writes_through_views(roots):
    return any("CopySlices" in n.name() for n in nodes(roots))


def keeps_numbers(roots):
    """Whether a product with a number is among the nodes: PyTorch keeps the number as a tensor, which is freed."""
    return any(re.match("MulB|DivB", n.name()) and any(not made for made, _ in n.next_functions[1:])
               for n in nodes(roots))


def peculiar(error, roots):
    """Why this error of a backward need not be an error elsewhere; None if it must be one."""
    if error == "backward_twice_freed" and writes_through_views(roots):
        return "a write through a view keeps nothing, but is freed"
    if error == "backward_twice_freed" and keeps_numbers(roots):
        return "perhaps only a number was kept, and freed"
    if error == "overlapping_write":
        return "the backward of a write into an expanded tensor is not supported"
    return "what nobody needs is not unpacked" if leads_nowhere(roots) else None


def leads_nowhere(roots):
    """Whether some node is run although nothing before it wants a gradient: a view made under no_grad was read."""
    return any(n.next_functions and not any(next_node for next_node, _ in n.next_functions) for n in nodes(roots))


def items(index, tensors):
    """Python's index from the format's."""
    kinds = {"int": lambda i: i[1], "slice": lambda i: slice(*i[1:]), "ellipsis": lambda i: Ellipsis,
             "newaxis": lambda i: None, "tensor": lambda i: tensors[i[1]]}
    return tuple(kinds[i[0]](i) for i in index)


def getitem(x, *tensors, index):
    return x[items(index, tensors)]


def setitem_(x, source, *tensors, index, value=None):
    x[items(index, tensors)] = value if source is None else source
    return x


def along(name):
    """The method of an op whose attribute `dim` comes before its tensors."""
    return lambda x, *tensors, dim: getattr(x, name)(dim, *tensors)


def slice_(x, dim, start=None, end=None, step=1):
    return x[(slice(None),) * (dim % x.dim()) + (slice(start, end, step),)]


def clamp(x, **attrs):
    return torch.clamp(x, attrs.get("min"), attrs.get("max"))


OPS = {
    "getitem": getitem, "setitem_": setitem_, "slice": slice_, "clamp": clamp,
    "clamp_": lambda x, **a: x.clamp_(a.get("min"), a.get("max")),
    "softmax": lambda x, dim: torch.softmax(x, dim), "cat": lambda *x, dim=0: torch.cat(x, dim),
    "stack": lambda *x, dim=0: torch.stack(x, dim), "split": lambda x, split_size_or_sections, dim=0:
        torch.split(x, split_size_or_sections, dim),
    "unfold": lambda x, dimension, size, step: x.unfold(dimension, size, step),
    "view": lambda x, size: x.view(size), "expand": lambda x, size: x.expand(size),
    "contiguous": lambda x: x.contiguous(), "detach": lambda x: x.detach(),
    "lerp": lambda x, end, weight: torch.lerp(x, end, weight), "repeat": lambda x, repeats: x.repeat(repeats),
    **{name: along(name) for name in ("index_select", "index_add_", "index_copy_", "scatter_", "scatter_add_")},
    "index_put_": lambda x, values, *indices, accumulate=False: x.index_put_(indices, values, accumulate),
}
# A number in place of a tensor is an attribute.
NUMBERS = {"other", "exponent", "value", "end", "weight"}


def call_op(statement, tensors):
    name, attrs = statement["op"], dict(statement.get("attrs", {}))
    if name in OPS:
        return OPS[name](*tensors, **attrs)
    arguments = list(tensors)
    for key in list(attrs):
        if key in NUMBERS and len(arguments) < 2 and key != "value":
            arguments.append(attrs.pop(key))
    if name in ("fill_", "masked_fill_", "masked_fill") and "value" in attrs:
        arguments.append(attrs.pop("value"))
    function = getattr(arguments[0], name) if name.endswith("_") else getattr(torch, name, None)
    return function(*arguments[1:], **attrs) if name.endswith("_") else function(*arguments, **attrs)


class Oracle:
    """Names and the tensors that they refer to."""

    def __init__(self):
        self.names = {}

    def get(self, names):
        return [None if n is None else self.names[n] for n in names]

    def bind_input(self, entry, values):
        layout = entry.get("layout")
        t = values.clone()
        if layout:
            memory = torch.zeros(layout["storage"], dtype=values.dtype)
            t = memory.as_strided(values.shape, layout["strides"], layout["offset"])
            t.copy_(values)
            t = t.detach()
        self.names[entry["name"]] = t.requires_grad_(entry.get("requires_grad", False))

    def run(self, statement):
        """Executes; raises PyTorch's exceptions."""
        if "op" in statement:
            results = call_op(statement, self.get(statement["in"]))
            results = results if isinstance(results, (tuple, list)) else [results]
            for name, t in zip(statement.get("out", []), results):
                if name is not None:
                    self.names[name] = t
            return
        getattr(self, statement["do"])(statement)

    def requires_grad(self, s):
        self.names[s["var"]].requires_grad_(s["value"])

    def retain_grad(self, s):
        self.names[s["var"]].retain_grad()

    def get_grad(self, s):
        self.names[s["out"]] = self.names[s["var"]].grad

    def set_grad(self, s):
        self.names[s["var"]].grad = None if s["value"] is None else self.names[s["value"]]

    def backward(self, s):
        inputs = self.get(s["inputs"]) if "inputs" in s else None
        torch.autograd.backward(self.get(s["roots"]), self.get(s["cotangents"]), inputs=inputs, **flags(s))

    def grad(self, s):
        grads = torch.autograd.grad(self.get(s["roots"]), self.get(s["inputs"]), self.get(s["cotangents"]),
                                    allow_unused=s.get("allow_unused", False), **flags(s))
        for name, g in zip(s["out"], grads):
            if name is not None and g is not None:
                self.names[name] = g


def flags(statement):
    return {k: statement[k] for k in ("retain_graph", "create_graph") if k in statement}
