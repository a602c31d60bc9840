"""Helpers for drawing statements of all kinds: operands that fit, masks and indices, functions and their domains.

`p` is the program being generated (program.py).
"""

import torch

# Functions of one tensor, with the values that they are used for.
UNARY = {
    "neg": None, "sin": None, "cos": None, "tanh": None, "sigmoid": None, "square": lambda x: x.abs().max() < 20,
    "abs": None, "relu": None, "exp": lambda x: x.max() < 3, "sqrt": lambda x: x.min() > 0.1,
    "log": lambda x: x.min() > 0.1, "rsqrt": lambda x: x.min() > 0.1, "reciprocal": lambda x: x.abs().min() > 0.2,
    "expm1": lambda x: x.max() < 3, "log1p": lambda x: x.min() > -0.8, "atan": None, "erf": None,
    "sinh": lambda x: x.abs().max() < 3,
}
WRITTEN_ONLY = {"floor": None, "sign": None, "round": None, "trunc": None, "frac": None, "zero": None}


def holds(name, x):
    rule = UNARY.get(name)
    x = x.detach()
    return rule is None or x.numel() == 0 or bool(rule(x))


def some_dim(p, t):
    return p.random.randrange(-t.dim(), t.dim())


def weighted(p, table):
    return p.random.choices(table, [row[0] for row in table])[0]


def emit_op(p, op, operands, attrs, outputs=1):
    statement = {"op": op, "in": operands}
    if attrs:
        statement["attrs"] = attrs
    if outputs:
        statement["out"] = [p.fresh() for _ in range(outputs)]
    p.emit(statement)
    return True


def is_row_major(p, t):
    """Whether every engine would have these strides: those of a leaf, or row-major ones and views of such."""
    root = t if t._base is None else t._base
    if any(root is d or t is d for d in p.derived):
        return False
    return root.is_contiguous() or any(root is p.tensor(e["name"]) for e in p.inputs)


def partner(p, t):
    """A tensor that broadcasts with t, rarely one that does not."""
    def fits(other):
        try:
            return torch.broadcast_shapes(other.shape, t.shape) and other.numel() <= 24
        except RuntimeError:
            return False
    return p.pick(fits) if p.random.random() < 0.97 else p.pick()


def mask(p, t, letter="m"):
    known = [n for n, m in p.oracle.names.items()
             if n[0] == letter and m is not None and m.dtype == torch.bool and m.shape == t.shape]
    if known and p.random.random() < 0.6:
        return p.random.choice(known)
    values = torch.tensor([p.random.random() < 0.5 for _ in range(t.numel())], dtype=torch.bool)
    return p.new_input(tuple(t.shape), values=values.reshape(t.shape), letter=letter)


def index(p, size, length, letter="i"):
    """Distinct positions: the result of a double write depends on the order."""
    values = torch.tensor(p.random.sample(range(size), min(size, length)))
    return p.new_input(tuple(values.shape), values=values, letter=letter)
