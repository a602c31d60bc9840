"""The statements that generate_views.py draws: views, writes in place, reads, and those about gradients.

draw(program) picks a kind by its weight, an op of it, operands and attributes that make sense for the tensors at hand (or
nearly: some are meant to be refused), and emits the statement. False when nothing fits; then it is tried again.
"""

import torch

import torch_oracle

# Functions of one tensor, with the values that they are used for.
UNARY = {
    "neg": None, "sin": None, "cos": None, "tanh": None, "sigmoid": None, "square": lambda x: x.abs().max() < 20,
    "abs": None, "relu": None, "exp": lambda x: x.max() < 3, "sqrt": lambda x: x.min() > 0.1,
    "log": lambda x: x.min() > 0.1, "rsqrt": lambda x: x.min() > 0.1, "reciprocal": lambda x: x.abs().min() > 0.2,
    "expm1": lambda x: x.max() < 3, "log1p": lambda x: x.min() > -0.8, "atan": None, "erf": None, "sinh": lambda x: x.abs().max() < 3,
}
WRITTEN_ONLY = {"floor": None, "sign": None, "round": None, "trunc": None, "frac": None, "zero": None}


def holds(name, x):
    rule = UNARY.get(name)
    x = x.detach()
    return rule is None or x.numel() == 0 or bool(rule(x))


# ---- overlap -------------------------------------------------------------------------------------------------

def places(t):
    """The elements of the storage that t shows, row-major."""
    at = torch.tensor([t.storage_offset()])
    for size, stride in zip(t.shape, t.stride()):
        at = (at[:, None] + torch.arange(size) * stride).flatten()
    return at.tolist()


def same_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def overlaps_otherwise(target, value):
    """Whether they show the same elements with other strides: what an engine makes of a value first, decides."""
    if not same_memory(target, value):
        return False
    same = set(places(target)) == set(places(value))
    return same and (target.shape != value.shape or target.stride() != value.stride())


def is_dense(t):
    at = sorted(places(t))
    return at == list(range(at[0], at[0] + len(at))) if at else True


def undefined_write(written, read):
    """Whether a write with this operand has a result that depends on the order of elements, unnoticed by PyTorch."""
    own = places(written)
    if not own:
        return False
    if len(set(own)) < len(own):  # repeated by a stride of 0: refused
        if all(size < 2 or stride > 0 for size, stride in zip(written.shape, written.stride())):
            return True
    for t in read:
        if t is None or t.numel() == 0 or not same_memory(t, written):
            continue
        other = places(t)
        if not set(own) & set(other):
            continue
        same = t.shape == written.shape and own == other
        if same and t.stride() != written.stride():  # in dims of size 1 alone
            return True
        if not same and not (is_dense(t) and is_dense(written)):
            return True
    return False


# ---- views ---------------------------------------------------------------------------------------------------

def some_dim(p, t):
    return p.random.randrange(-t.dim(), t.dim())


def draw_slice(p, t):
    d = some_dim(p, t)
    size = t.size(d)
    start, end = sorted((p.random.randint(0, size), p.random.randint(0, size + 1)))
    attrs = {"dim": d, "start": p.random.choice((start, None)), "end": p.random.choice((end, None))}
    if p.random.random() < 0.4:
        attrs["step"] = p.random.randint(1, 2)
    return "slice", {k: v for k, v in attrs.items() if v is not None}


def draw_narrow(p, t):
    d = some_dim(p, t)
    start = p.random.randint(0, t.size(d))
    return "narrow", {"dim": d, "start": start, "length": p.random.randint(0, t.size(d) - start)}


def draw_select(p, t):
    d = some_dim(p, t)
    return ("select", {"dim": d, "index": p.random.randrange(-t.size(d), t.size(d))}) if t.size(d) else None


def other_shape(p, t):
    n, shape = t.numel(), []
    for _ in range(p.random.randint(0, 2)):
        divisors = [d for d in range(1, n + 1) if n and n % d == 0]
        if not divisors:
            break
        shape.append(p.random.choice(divisors))
        n //= shape[-1]
    return shape + [n if p.random.random() < 0.7 or n == 0 else -1]


def draw_expand(p, t):
    size = [s if s != 1 or p.random.random() < 0.4 else p.random.randint(1, 3) for s in t.shape]
    if t.dim() < 3 and p.random.random() < 0.5:
        size.insert(0, p.random.randint(1, 2))
    return p.random.choice(("expand", "broadcast_to")), {"size": size}


def draw_diagonal(p, t):
    if t.dim() < 2:
        return None
    a, b = p.random.sample(range(t.dim()), 2)
    return "diagonal", {"offset": p.random.randint(-1, 1), "dim1": a, "dim2": b}


def draw_unfold(p, t):
    d = some_dim(p, t)
    if t.size(d) == 0:
        return None
    return "unfold", {"dimension": d, "size": p.random.randint(1, t.size(d)), "step": p.random.randint(1, 2)}


def draw_as_strided(p, t):
    room = t.untyped_storage().nbytes() // t.element_size()
    size, stride, last = [], [], 0
    for _ in range(p.random.randint(1, 2)):
        size.append(p.random.randint(1, 3))
        stride.append(p.random.randint(1, 3) if p.random.random() < 0.95 else 0)
        last += (size[-1] - 1) * stride[-1]
    if last >= room:
        return None
    attrs = {"size": size, "stride": stride}
    if p.random.random() < 0.6:
        attrs["storage_offset"] = p.random.randint(0, room - 1 - last)
    elif t.storage_offset() + last >= room:
        return None
    shown = places(t.detach().as_strided(size, stride, attrs.get("storage_offset", t.storage_offset())))
    return ("as_strided", attrs) if set(shown) <= set(places(t)) else None


def draw_getitem(p, t):
    index = []
    for d in range(p.random.randint(0, t.dim())):
        kind = p.random.random()
        if kind < 0.35 and t.size(d):
            index.append(["int", p.random.randrange(-t.size(d), t.size(d))])
        elif kind < 0.75:
            index.append(["slice", p.random.choice((None, 0, 1)), None, p.random.choice((None, 1, 2))])
        else:
            break
    if p.random.random() < 0.3:
        index.append(["ellipsis"])
    if p.random.random() < 0.2:
        index.append(["newaxis"])
    return "getitem", {"index": index}


def draw_transpose(p, t):
    return "transpose", {"dim0": some_dim(p, t), "dim1": some_dim(p, t)}


def draw_permute(p, t):
    return "permute", {"dims": p.random.sample(range(t.dim()), t.dim())}


def draw_movedim(p, t):
    return "movedim", {"source": some_dim(p, t), "destination": some_dim(p, t)}


def draw_squeeze(p, t):
    return "squeeze", {"dim": some_dim(p, t)} if p.random.random() < 0.6 else {}


VIEWS = [
    (3, 1, draw_slice), (2, 1, draw_narrow), (4, 1, draw_select), (2, 1, draw_getitem), (2, 1, draw_transpose),
    (1, 1, draw_permute), (1, 1, draw_movedim), (1, 1, draw_squeeze), (1, 1, draw_unfold), (1, 2, draw_diagonal),
    (2, 0, draw_expand), (2, 0, draw_as_strided),
    (3, 0, lambda p, t: ("view", {"size": other_shape(p, t)})),
    (2, 0, lambda p, t: ("reshape", {"shape": other_shape(p, t)})),
    (1, 0, lambda p, t: ("flatten", {})),
    (1, 0, lambda p, t: ("unsqueeze", {"dim": p.random.randint(-t.dim() - 1, t.dim())})),
    (1, 0, lambda p, t: ("t", {}) if t.dim() <= 2 else None),
    (3, 0, lambda p, t: ("detach", {})), (1, 0, lambda p, t: ("contiguous", {})),
]
MULTIPLE = [
    lambda p, t, d: ("unbind", {"dim": d}),
    lambda p, t, d: ("chunk", {"chunks": p.random.randint(1, 3), "dim": d}),
    lambda p, t, d: ("split", {"split_size_or_sections": p.random.randint(1, 2), "dim": d}),
]


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
    """Whether strides are what every engine would have: those of a leaf, or row-major ones and views of such."""
    root = t if t._base is None else t._base
    if any(root is d or t is d for d in p.derived):
        return False
    return root.is_contiguous() or any(root is p.tensor(e["name"]) for e in p.inputs)


def view(p):
    _, rank, make = weighted(p, VIEWS)
    name = p.pick(lambda t: t.dim() >= rank and is_row_major(p, t))
    drawn = name and make(p, p.tensor(name))
    return bool(drawn) and emit_op(p, drawn[0], [name], drawn[1])


def several_views(p):
    name = p.pick(lambda t: t.dim() > 0 and t.numel() > 0)
    if not name:
        return False
    t = p.tensor(name)
    d = some_dim(p, t)
    op, attrs = p.random.choice(MULTIPLE)(p, t, d)
    pieces = {"unbind": t.size(d), "chunk": len(torch.chunk(t.detach(), attrs.get("chunks", 1), d)),
              "split": len(torch.split(t.detach(), attrs.get("split_size_or_sections", 1), d))}[op]
    return emit_op(p, op, [name], attrs, pieces)


# ---- reads ---------------------------------------------------------------------------------------------------

def partner(p, t):
    """A tensor that broadcasts with t, seldom one that does not."""
    def fits(other):
        try:
            return torch.broadcast_shapes(other.shape, t.shape) and other.numel() <= 24
        except RuntimeError:
            return False
    return p.pick(fits) if p.random.random() < 0.97 else p.pick()


def read_unary(p):
    op = p.random.choice(list(UNARY))
    name = p.pick(lambda t: holds(op, t))
    return bool(name) and emit_op(p, op, [name], {})


def read_binary(p):
    name = p.pick()
    other = name and partner(p, p.tensor(name))
    if not other:
        return False
    ops = ["add", "sub"]
    if p.tensor(other).dtype == p.tensor(name).dtype:
        ops += ["mul", "mul", "maximum", "atan2", "lerp"]
        if p.tensor(other).numel() and p.tensor(other).detach().abs().min() > 0.2:
            ops.append("div")
    op = p.random.choice(ops)
    return emit_op(p, op, [name, other], {"weight": 0.25} if op == "lerp" else {})


def read_other(p):
    name = p.pick(lambda t: t.numel() > 0)
    if not name:
        return False
    t, r = p.tensor(name), p.random
    choices = [("sum", {}), ("mean", {}), ("clone", {}), ("clone", {}), ("mul", {"other": 0.5}), ("pow", {"exponent": 2}),
               ("clamp", {"min": -0.5, "max": 0.75})]
    if t.dim():
        d = some_dim(p, t)
        choices += [("sum", {"dim": [d]}), ("cumsum", {"dim": d}), ("softmax", {"dim": d}), ("amax", {"dim": [d]}),
                    ("flip", {"dims": [d]}), ("roll", {"shifts": 1, "dims": d})]
    op, attrs = r.choice(choices)
    return emit_op(p, op, [name], attrs)


def read_indexed(p):
    name = p.pick(lambda t: t.dim() > 0 and t.numel() > 0)
    if not name:
        return False
    t = p.tensor(name)
    if p.random.random() < 0.5:
        return emit_op(p, "masked_fill", [name, mask(p, t)], {"value": 0.5})
    d = some_dim(p, t)
    return emit_op(p, "index_select", [name, index(p, t.size(d), p.random.randint(1, 3))], {"dim": d})


def read_joined(p):
    name = p.pick(lambda t: t.dim() > 0 and t.numel() <= 12)
    if not name:
        return False
    t = p.tensor(name)
    other = p.pick(lambda o: o.shape == t.shape and o.dtype == t.dtype)
    return emit_op(p, p.random.choice(("cat", "stack")), [name, other], {"dim": some_dim(p, t)})


def read_product(p):
    name = p.pick(lambda t: t.dim() == 2)
    if not name:
        return False
    t = p.tensor(name)
    other = p.pick(lambda o: o.dim() == 2 and o.size(0) == t.size(1) and o.dtype == t.dtype)
    return bool(other) and emit_op(p, "mm", [name, other], {})


# ---- writes --------------------------------------------------------------------------------------------------

def mask(p, t, letter="m"):
    known = [n for n, m in p.oracle.names.items()
             if n[0] == letter and m is not None and m.dtype == torch.bool and m.shape == t.shape]
    if known and p.random.random() < 0.6:
        return p.random.choice(known)
    values = torch.tensor([p.random.random() < 0.5 for _ in range(t.numel())], dtype=torch.bool)
    return p.new_input(tuple(t.shape), values=values.reshape(t.shape), letter=letter)


def index(p, size, length, letter="i"):
    """Different places: what is written twice depends on the order."""
    values = torch.tensor(p.random.sample(range(size), min(size, length)))
    return p.new_input(tuple(values.shape), values=values, letter=letter)


def pick_written(p, accept=lambda t: True):
    """Seldom a leaf that requires a gradient, or a view of one: with gradients on, writing to it is refused."""
    def is_free(t):
        base = t if t._base is None else t._base
        return not (base.requires_grad and torch_oracle.is_leaf(base)) and not (t.requires_grad and torch_oracle.is_leaf(t))
    def is_known(t):
        return not any(t is d or t._base is d for d in p.derived)

    forbidden = torch.is_grad_enabled() and p.random.random() < 0.93
    return p.pick(lambda t: accept(t) and is_known(t) and (not forbidden or is_free(t)))


def undefined_at_indices(op, operands, written, read):
    """The same for ops that write at indices; two of them keep their source for a backward that does not need it."""
    if op not in ("scatter_", "scatter_add_", "index_add_", "index_copy_", "index_put_", "masked_scatter_"):
        return False
    source = read[0] if op == "index_put_" else read[1]
    if same_memory(written, source) and set(places(written)) & set(places(source)):
        return op == "masked_scatter_" or not (source is written or is_dense(source) and is_dense(written))
    return op in ("index_add_", "index_copy_") and operands[2][0] != "s"


def emit_write(p, op, operands, attrs, result=False):
    written, *read = (p.tensor(n) if n else None for n in operands)
    if undefined_write(written, read) or undefined_at_indices(op, operands, written, read):
        return False
    if len(set(places(written))) < written.numel():  # expanded: refused, or else
        if op in ("masked_fill_", "index_put_") or (op == "copy_" and read[0] is written):
            return False  # deprecated, or pointless
        if torch.is_grad_enabled() and any(t.requires_grad for t in (written, *read) if t is not None):
            return False  # the backward is not supported
    return emit_op(p, op, operands, attrs, int(result or p.random.random() < 0.1))


def write_unary(p):
    op = p.random.choice(list(UNARY) + list(WRITTEN_ONLY))
    name = pick_written(p, lambda t: holds(op, t))
    return bool(name) and emit_write(p, op + "_", [name], {})


def write_number(p):
    name = pick_written(p)
    op, attrs = p.random.choice([("fill_", {"value": 0.5}), ("mul_", {"other": 0.5}), ("add_", {"other": 1.0}),
                                 ("sub_", {"other": 0.25}), ("div_", {"other": 2.0}), ("pow_", {"exponent": 2}),
                                 ("clamp_", {"min": -0.5, "max": 0.75})])
    return bool(name) and emit_write(p, op, [name], attrs)


def write_binary(p):
    name = pick_written(p)
    other = name and partner(p, p.tensor(name))
    if not other:
        return False
    o = p.tensor(other)
    ops = ["add_", "add_", "sub_", "copy_", "copy_"]
    if o.dtype == p.tensor(name).dtype:
        ops += ["mul_", "mul_", "lerp_", "atan2_"]
        if o.numel() and o.detach().abs().min() > 0.2:
            ops.append("div_")
    op = p.random.choice(ops)
    attrs = {"lerp_": {"weight": 0.25}}.get(op, {"alpha": 2} if op in ("add_", "sub_") and p.random.random() < 0.2 else {})
    return emit_write(p, op, [name, other], attrs)


def write_ternary(p):
    name = pick_written(p)
    a = name and partner(p, p.tensor(name))
    b = name and partner(p, p.tensor(name))
    if not a or not b or len({p.tensor(n).dtype for n in (name, a, b)}) > 1:
        return False
    return emit_write(p, "addcmul_", [name, a, b], {"value": 0.5})


def write_masked(p):
    name = pick_written(p)
    if not name:
        return False
    t = p.tensor(name)
    return emit_write(p, "masked_fill_", [name, mask(p, t)], {"value": -0.5})


def write_scattered(p):
    name = pick_written(p, lambda t: t.numel() > 0)
    if not name:
        return False
    t = p.tensor(name)
    source = p.pick(lambda s: s.numel() >= t.numel() and s.dtype == t.dtype)
    return bool(source) and emit_write(p, "masked_scatter_", [name, mask(p, t, "k"), source], {})


def write_item(p):
    name = pick_written(p)
    if not name:
        return False
    t = p.tensor(name)
    attrs = dict(draw_getitem(p, t)[1])
    try:
        target = t.detach()[torch_oracle.items(attrs["index"], [])]
    except (RuntimeError, IndexError):
        return False
    if p.random.random() < 0.4:
        return emit_write(p, "setitem_", [name, None], {**attrs, "value": 0.5})
    value = p.pick(lambda v: v.dim() <= target.dim() and _broadcasts(v.shape, target.shape) and v.dtype == t.dtype)
    if not value or overlaps_otherwise(target, p.tensor(value)) or len(set(places(target))) < target.numel():
        return False
    return emit_write(p, "setitem_", [name, value], attrs)


def _broadcasts(shape, to):
    try:
        return torch.broadcast_shapes(shape, to) == to
    except RuntimeError:
        return False


def write_indexed(p):
    name = pick_written(p, lambda t: t.dim() > 0 and t.numel() > 0)
    if not name:
        return False
    t, r = p.tensor(name), p.random
    d = some_dim(p, t)
    op = r.choice(("index_add_", "index_copy_", "scatter_add_", "scatter_", "index_put_"))
    if op in ("index_add_", "index_copy_"):
        i = index(p, t.size(d), r.randint(1, 3))
        shape = list(t.shape)
        shape[d] = p.tensor(i).numel()
    elif op == "index_put_":
        i = index(p, t.size(0), r.randint(1, 3), "k")
        shape, d = [p.tensor(i).numel(), *t.shape[1:]], None
    else:
        order = torch.argsort(torch.tensor([r.random() for _ in range(t.numel())]).reshape(t.shape), dim=d)
        i, shape = p.new_input(tuple(t.shape), values=order, letter="i"), list(t.shape)
    source = None if op in ("index_add_", "index_copy_") and r.random() < 0.8 else p.pick(
        lambda s: list(s.shape) == shape and s.dtype == t.dtype)
    if not source:
        source = p.new_input(tuple(shape), t.dtype, requires_grad=r.random() < 0.5, letter="s")
    operands = [name, source, i] if op == "index_put_" else [name, i, source]
    return emit_write(p, op, operands, {} if d is None else {"dim": d})


def write_index(p):
    """Into an index or a mask that a record may have saved."""
    names = [n for n, t in p.oracle.names.items() if t is not None and not t.is_floating_point() and n[0] != "k"]
    if not names:
        return False
    name = p.random.choice(names)
    if p.tensor(name).dtype == torch.bool:
        return emit_op(p, "logical_not_", [name], {}, 0)
    if p.random.random() < 0.3:
        return emit_op(p, "add_", [name], {"other": 0.5}, 0)  # refused
    return emit_op(p, "mul_", [name], {"other": 1}, 0)


# ---- gradients -----------------------------------------------------------------------------------------------

def some_roots(p):
    roots = [n for n, t in p.oracle.names.items() if t is not None and t.is_floating_point() and t.requires_grad]
    if not roots:
        return []
    return p.random.sample(roots, min(len(roots), p.random.randint(1, 2)))


def backward(p):
    roots = some_roots(p)
    if not roots:
        return False
    statement = {"do": "backward", "roots": roots, "cotangents": [p.cotangent(r) for r in roots],
                 "retain_graph": p.random.random() < 0.8}
    if p.random.random() < 0.1:
        statement["create_graph"] = True
        statement["retain_graph"] = True
    p.emit(statement)
    return True


def grad(p):
    roots = some_roots(p)
    inputs = [n for n, t in p.oracle.names.items() if t is not None and t.is_floating_point() and t.requires_grad]
    if not roots:
        return False
    inputs = [n for n in inputs if p.tensor(n)._base is None or torch_oracle.is_leaf(p.tensor(n))]
    if not inputs:
        return False
    inputs = p.random.sample(inputs, min(len(inputs), p.random.randint(1, 2)))
    create = p.random.random() < 0.4
    p.emit({"do": "grad", "roots": roots, "cotangents": [p.cotangent(r) for r in roots], "inputs": inputs,
            "out": [p.fresh("g") for _ in inputs], "retain_graph": True, "create_graph": create, "allow_unused": True})
    return True


def requires_grad(p):
    """Of tensors that share memory with no other: what older views of it do is up to when they are looked at."""
    tensors = [t for t in p.oracle.names.values() if t is not None]
    name = p.pick(lambda t: sum(same_memory(t, o) for o in tensors) == 1)
    if not name:
        return False
    p.emit({"do": "requires_grad", "var": name, "value": p.random.random() < 0.7})
    return True


def retain_grad(p):
    name = p.pick(lambda t: t._base is None and t.requires_grad and not t.is_leaf)
    if not name:
        return False
    p.emit({"do": "retain_grad", "var": name})
    return True


def get_grad(p):
    name = p.pick(lambda t: torch_oracle.is_leaf(t) and t.grad is not None)
    if not name:
        return False
    p.emit({"do": "get_grad", "var": name, "out": p.fresh("g")})
    return True


def set_grad(p):
    name = p.pick(lambda t: torch_oracle.is_leaf(t) and t.requires_grad)
    if not name:
        return False
    t = p.tensor(name)
    value = p.pick(lambda g: g.shape == t.shape and g.dtype == t.dtype and not g.requires_grad)
    p.emit({"do": "set_grad", "var": name, "value": value if p.random.random() < 0.5 else None})
    return True


def mode(p):
    p.block(p.random.choice(("no_grad", "no_grad", "enable_grad")), p.random.randint(1, 3))
    return True


KINDS = [(30, view), (6, several_views), (10, read_unary), (8, read_binary), (6, read_other), (2, read_indexed),
         (2, read_joined), (2, read_product), (14, write_unary), (8, write_number), (14, write_binary),
         (3, write_ternary), (4, write_masked), (1, write_scattered), (6, write_item), (6, write_indexed), (1, write_index), (4, backward),
         (3, grad), (1, requires_grad), (2, retain_grad), (1, get_grad), (1, set_grad), (5, mode)]


def draw(p):
    return weighted(p, KINDS)[1](p)
