"""Statements that write in place. Those without a defined result are not drawn (overlap.py)."""

import torch

import common
import oracle
import overlap
import views


def pick_written(p, accept=lambda t: True):
    """Rarely a leaf that requires a gradient, or a view of one: with gradients on, writing to it is refused."""
    def is_free(t):
        base = t if t._base is None else t._base
        return not any(x.requires_grad and oracle.is_leaf(x) for x in (t, base))

    def is_known(t):
        return not any(t is d or t._base is d for d in p.derived)

    forbidden = torch.is_grad_enabled() and p.random.random() < 0.93
    return p.pick(lambda t: accept(t) and is_known(t) and (not forbidden or is_free(t)))


def undefined_at_indices(op, operands, written, read):
    """The same for ops that write at indices; two of them keep their source for a backward that does not need it."""
    if op not in ("scatter_", "scatter_add_", "index_add_", "index_copy_", "index_put_", "masked_scatter_"):
        return False
    source = read[0] if op == "index_put_" else read[1]
    if overlap.meet(written, source):
        is_noticed = source is written or (overlap.is_dense(source) and overlap.is_dense(written))
        return op == "masked_scatter_" or not is_noticed
    return op in ("index_add_", "index_copy_") and operands[2][0] != "s"


def emit_write(p, op, operands, attrs, result=False):
    written, *read = (p.tensor(n) if n else None for n in operands)
    if overlap.undefined_write(written, read) or undefined_at_indices(op, operands, written, read):
        return False
    if overlap.repeats(written):  # refused, or else
        if op in ("masked_fill_", "index_put_") or (op == "copy_" and overlap.meet(written, read[0])):
            return False  # deprecated, or pointless
        if torch.is_grad_enabled() and any(t.requires_grad for t in (written, *read) if t is not None):
            return False  # the backward is not supported
    return common.emit_op(p, op, operands, attrs, int(result or p.random.random() < 0.1))


def write_unary(p):
    op = p.random.choice(list(common.UNARY) + list(common.WRITTEN_ONLY))
    name = pick_written(p, lambda t: common.holds(op, t))
    return bool(name) and emit_write(p, op + "_", [name], {})


def write_number(p):
    name = pick_written(p)
    op, attrs = p.random.choice([("fill_", {"value": 0.5}), ("mul_", {"other": 0.5}), ("add_", {"other": 1.0}),
                                 ("sub_", {"other": 0.25}), ("div_", {"other": 2.0}), ("pow_", {"exponent": 2}),
                                 ("clamp_", {"min": -0.5, "max": 0.75})])
    return bool(name) and emit_write(p, op, [name], attrs)


def write_binary(p):
    name = pick_written(p)
    other = name and common.partner(p, p.tensor(name))
    if not other:
        return False
    o = p.tensor(other)
    ops = ["add_", "add_", "sub_", "copy_", "copy_"]
    if o.dtype == p.tensor(name).dtype:
        ops += ["mul_", "mul_", "lerp_", "atan2_"]
        if o.numel() and o.detach().abs().min() > 0.2:
            ops.append("div_")
    op = p.random.choice(ops)
    attrs = {"weight": 0.25} if op == "lerp_" else {}
    if op in ("add_", "sub_") and p.random.random() < 0.2:
        attrs = {"alpha": 2}
    return emit_write(p, op, [name, other], attrs)


def write_ternary(p):
    name = pick_written(p)
    a = name and common.partner(p, p.tensor(name))
    b = name and common.partner(p, p.tensor(name))
    if not a or not b or len({p.tensor(n).dtype for n in (name, a, b)}) > 1:
        return False
    return emit_write(p, "addcmul_", [name, a, b], {"value": 0.5})


def write_masked(p):
    name = pick_written(p)
    if not name:
        return False
    t = p.tensor(name)
    return emit_write(p, "masked_fill_", [name, common.mask(p, t)], {"value": -0.5})


def write_scattered(p):
    name = pick_written(p, lambda t: t.numel() > 0)
    if not name:
        return False
    t = p.tensor(name)
    source = p.pick(lambda s: s.numel() >= t.numel() and s.dtype == t.dtype)
    return bool(source) and emit_write(p, "masked_scatter_", [name, common.mask(p, t, "k"), source], {})


def write_item(p):
    name = pick_written(p)
    if not name:
        return False
    t = p.tensor(name)
    attrs = dict(views.draw_getitem(p, t)[1])
    try:
        target = t.detach()[oracle.items(attrs["index"], [])]
    except (RuntimeError, IndexError):
        return False
    if p.random.random() < 0.4:
        return emit_write(p, "setitem_", [name, None], {**attrs, "value": 0.5})
    value = p.pick(lambda v: v.dim() <= target.dim() and broadcasts(v.shape, target.shape) and v.dtype == t.dtype)
    if not value or overlap.overlaps_otherwise(target, p.tensor(value)) or overlap.repeats(target):
        return False
    return emit_write(p, "setitem_", [name, value], attrs)


def broadcasts(shape, to):
    try:
        return torch.broadcast_shapes(shape, to) == to
    except RuntimeError:
        return False


def write_indexed(p):
    name = pick_written(p, lambda t: t.dim() > 0 and t.numel() > 0)
    if not name:
        return False
    t, r = p.tensor(name), p.random
    d = common.some_dim(p, t)
    op = r.choice(("index_add_", "index_copy_", "scatter_add_", "scatter_", "index_put_"))
    if op in ("index_add_", "index_copy_"):
        i = common.index(p, t.size(d), r.randint(1, 3))
        shape = list(t.shape)
        shape[d] = p.tensor(i).numel()
    elif op == "index_put_":
        i = common.index(p, t.size(0), r.randint(1, 3), "k")
        shape, d = [p.tensor(i).numel(), *t.shape[1:]], None
    else:
        order = torch.argsort(torch.tensor([r.random() for _ in range(t.numel())]).reshape(t.shape), dim=d)
        i, shape = p.new_input(tuple(t.shape), values=order, letter="i"), list(t.shape)
    source = None
    if op not in ("index_add_", "index_copy_") or r.random() < 0.2:
        source = p.pick(lambda s: list(s.shape) == shape and s.dtype == t.dtype)
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
        return common.emit_op(p, "logical_not_", [name], {}, 0)
    if p.random.random() < 0.3:
        return common.emit_op(p, "add_", [name], {"other": 0.5}, 0)  # refused
    return common.emit_op(p, "mul_", [name], {"other": 1}, 0)
