"""Statements that compute new values: later writes may overwrite what they save."""

import common


def read_unary(p):
    op = p.random.choice(list(common.UNARY))
    name = p.pick(lambda t: common.holds(op, t))
    return bool(name) and common.emit_op(p, op, [name], {})


def read_binary(p):
    name = p.pick()
    other = name and common.partner(p, p.tensor(name))
    if not other:
        return False
    ops = ["add", "sub"]
    if p.tensor(other).dtype == p.tensor(name).dtype:
        ops += ["mul", "mul", "maximum", "atan2", "lerp"]
        if p.tensor(other).numel() and p.tensor(other).detach().abs().min() > 0.2:
            ops.append("div")
    op = p.random.choice(ops)
    return common.emit_op(p, op, [name, other], {"weight": 0.25} if op == "lerp" else {})


def read_other(p):
    name = p.pick(lambda t: t.numel() > 0)
    if not name:
        return False
    t, r = p.tensor(name), p.random
    choices = [("sum", {}), ("mean", {}), ("clone", {}), ("clone", {}), ("mul", {"other": 0.5}),
               ("pow", {"exponent": 2}), ("clamp", {"min": -0.5, "max": 0.75})]
    if t.dim():
        d = common.some_dim(p, t)
        choices += [("sum", {"dim": [d]}), ("cumsum", {"dim": d}), ("softmax", {"dim": d}), ("amax", {"dim": [d]}),
                    ("flip", {"dims": [d]}), ("roll", {"shifts": 1, "dims": d})]
    op, attrs = r.choice(choices)
    return common.emit_op(p, op, [name], attrs)


def read_indexed(p):
    name = p.pick(lambda t: t.dim() > 0 and t.numel() > 0)
    if not name:
        return False
    t = p.tensor(name)
    if p.random.random() < 0.5:
        return common.emit_op(p, "masked_fill", [name, common.mask(p, t)], {"value": 0.5})
    d = common.some_dim(p, t)
    i = common.index(p, t.size(d), p.random.randint(1, 3))
    return common.emit_op(p, "index_select", [name, i], {"dim": d})


def read_joined(p):
    name = p.pick(lambda t: t.dim() > 0 and t.numel() <= 12)
    if not name:
        return False
    t = p.tensor(name)
    other = p.pick(lambda o: o.shape == t.shape and o.dtype == t.dtype)
    return common.emit_op(p, p.random.choice(("cat", "stack")), [name, other], {"dim": common.some_dim(p, t)})


def read_product(p):
    name = p.pick(lambda t: t.dim() == 2)
    if not name:
        return False
    t = p.tensor(name)
    other = p.pick(lambda o: o.dim() == 2 and o.size(0) == t.size(1) and o.dtype == t.dtype)
    return bool(other) and common.emit_op(p, "mm", [name, other], {})
