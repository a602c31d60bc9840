"""Statements about gradients: backward and grad in between, flags, .grad, gradient mode."""

import oracle
import overlap


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
    if p.random.random() < 0.1 and not p.late:
        statement["create_graph"] = True
        statement["retain_graph"] = True
    p.emit(statement)
    return True


def grad(p):
    roots = some_roots(p)
    inputs = [n for n, t in p.oracle.names.items() if t is not None and t.is_floating_point() and t.requires_grad]
    if not roots:
        return False
    inputs = [n for n in inputs if p.tensor(n)._base is None or oracle.is_leaf(p.tensor(n))]
    if not inputs:
        return False
    inputs = p.random.sample(inputs, min(len(inputs), p.random.randint(1, 2)))
    create = p.random.random() < 0.4 and not p.late
    p.emit({"do": "grad", "roots": roots, "cotangents": [p.cotangent(r) for r in roots], "inputs": inputs,
            "out": [p.fresh("g") for _ in inputs], "retain_graph": True, "create_graph": create,
            "allow_unused": True})
    return True


def requires_grad(p):
    """For tensors that share memory with no other: the state of older views depends on when they are read."""
    tensors = [t for t in p.oracle.names.values() if t is not None]
    name = p.pick(lambda t: sum(overlap.same_memory(t, o) for o in tensors) == 1)
    if not name:
        return False
    value = p.random.random() < 0.7
    p.late |= value and name in p.read and not p.tensor(name).requires_grad
    p.emit({"do": "requires_grad", "var": name, "value": value})
    return True


def retain_grad(p):
    name = p.pick(lambda t: t._base is None and t.requires_grad and not t.is_leaf)
    if not name:
        return False
    p.emit({"do": "retain_grad", "var": name})
    return True


def get_grad(p):
    name = p.pick(lambda t: oracle.is_leaf(t) and t.grad is not None)
    if not name:
        return False
    p.emit({"do": "get_grad", "var": name, "out": p.fresh("g")})
    return True


def set_grad(p):
    name = p.pick(lambda t: oracle.is_leaf(t) and t.requires_grad)
    if not name:
        return False
    t = p.tensor(name)
    value = p.pick(lambda g: g.shape == t.shape and g.dtype == t.dtype and not g.requires_grad)
    p.emit({"do": "set_grad", "var": name, "value": value if p.random.random() < 0.5 else None})
    return True


def mode(p):
    p.block(p.random.choice(("no_grad", "no_grad", "enable_grad")), p.random.randint(1, 3))
    return True
