"""Statements that make views: an op for an existing tensor, usually with attributes that fit it."""

import torch

import common
import overlap


def draw_slice(p, t):
    d = common.some_dim(p, t)
    size = t.size(d)
    start, end = sorted((p.random.randint(0, size), p.random.randint(0, size + 1)))
    attrs = {"dim": d, "start": p.random.choice((start, None)), "end": p.random.choice((end, None))}
    if p.random.random() < 0.4:
        attrs["step"] = p.random.randint(1, 2)
    return "slice", {k: v for k, v in attrs.items() if v is not None}


def draw_narrow(p, t):
    d = common.some_dim(p, t)
    start = p.random.randint(0, t.size(d))
    return "narrow", {"dim": d, "start": start, "length": p.random.randint(0, t.size(d) - start)}


def draw_select(p, t):
    d = common.some_dim(p, t)
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
    d = common.some_dim(p, t)
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
    shown = overlap.places(t.detach().as_strided(size, stride, attrs.get("storage_offset", t.storage_offset())))
    return ("as_strided", attrs) if set(shown) <= set(overlap.places(t)) else None


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
    return "transpose", {"dim0": common.some_dim(p, t), "dim1": common.some_dim(p, t)}


def draw_permute(p, t):
    return "permute", {"dims": p.random.sample(range(t.dim()), t.dim())}


def draw_movedim(p, t):
    return "movedim", {"source": common.some_dim(p, t), "destination": common.some_dim(p, t)}


def draw_squeeze(p, t):
    return "squeeze", {"dim": common.some_dim(p, t)} if p.random.random() < 0.6 else {}


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


def view(p):
    _, rank, make = common.weighted(p, VIEWS)
    name = p.pick(lambda t: t.dim() >= rank and common.is_row_major(p, t))
    drawn = name and make(p, p.tensor(name))
    return bool(drawn) and common.emit_op(p, drawn[0], [name], drawn[1])


def several_views(p):
    name = p.pick(lambda t: t.dim() > 0 and t.numel() > 0)
    if not name:
        return False
    t = p.tensor(name)
    d = common.some_dim(p, t)
    op, attrs = p.random.choice(MULTIPLE)(p, t, d)
    pieces = {"unbind": t.size(d), "chunk": len(torch.chunk(t.detach(), attrs.get("chunks", 1), d)),
              "split": len(torch.split(t.detach(), attrs.get("split_size_or_sections", 1), d))}[op]
    return common.emit_op(p, op, [name], attrs, pieces)
