"""A random program that PyTorch executes while it is generated."""

import math
import random

import torch

import oracle
import overlap
import statements

LARGEST = 1e4
SHAPES = [(), (3,), (4,), (6,), (2, 3), (3, 2), (2, 2), (1, 3), (4, 3), (2, 1, 3), (2, 2, 2), (2, 3, 2)]
EMPTY = [(0,), (2, 0)]


class Discard(Exception):
    """The program cannot continue: it has no defined verdict."""


def too_large(t):
    with torch.no_grad():
        return t.is_floating_point() and t.numel() > 0 and not bool((t.abs() <= LARGEST).all())


class Program:
    """A program being generated: the case as it will be written, and PyTorch's tensors.

    Names say what a tensor is for: x a leaf, v a result, g a gradient, ct a cotangent, s a source of values that is not
    used otherwise, i an index, m a mask, k an index or a mask that is not written to.
    """

    def __init__(self, name, seed):
        self.random = random.Random(seed)
        self.oracle = oracle.Oracle()
        self.inputs, self.body, self.data = [], [], {}
        self.case_body = self.body
        self.name, self.count, self.failed = name, 0, False
        self.create_graph = False  # then whether a zero gradient has a history is up to the engine
        self.derived = []          # gradients, whose strides are up to the engine
        self.read = set()          # names that an op has read
        self.late = False          # one of them wants a gradient since
        shape = self.random.choice(SHAPES if self.random.random() < 0.95 else EMPTY)
        self.shapes = [shape, shape, self.random.choice(SHAPES + EMPTY)]
        for _ in range(self.random.randint(2, 4)):
            self.new_input(self.random.choice(self.shapes), requires_grad=self.random.random() < 0.6)

    # ---- what statements are made of ---------------------------------------------------------------------

    def fresh(self, letter="v"):
        self.count += 1
        return f"{letter}{self.count}"

    def new_input(self, shape, dtype=None, requires_grad=False, values=None, letter="x"):
        """A leaf; sometimes strided in memory."""
        r = self.random
        if values is None:
            dtype = dtype or (torch.float64 if r.random() < 0.92 else torch.float32)
            numbers = [r.choice((-1, 1)) * r.randint(1, 16) / 8 for _ in range(math.prod(shape))]
            values = torch.tensor(numbers, dtype=dtype).reshape(shape)
        entry = {"name": self.fresh(letter)}
        if requires_grad:
            entry["requires_grad"] = True
        if len(shape) > 1 and values.numel() > 0 and r.random() < 0.1:
            strides, step = [0] * len(shape), r.randint(1, 2)
            for d in r.sample(range(len(shape)), len(shape)):
                strides[d], step = step, step * shape[d]
            offset = r.randint(0, 2)
            entry["layout"] = {"strides": strides, "offset": offset, "storage": offset + step}
        self.inputs.append(entry)
        self.data[entry["name"]] = values
        self.oracle.bind_input(entry, values)
        return entry["name"]

    def tensor(self, name):
        return self.oracle.names[name]

    def pick(self, accept=lambda t: True):
        """A floating tensor, late ones more often."""
        names = [n for n, t in self.oracle.names.items()
                 if t is not None and t.is_floating_point() and n[0] not in "cs" and accept(t)]
        if not names:
            return None
        at = int(len(names) * self.random.random() ** 0.6)
        return names[min(at, len(names) - 1)]

    # ---- running -------------------------------------------------------------------------------------------

    def values(self):
        return {n: t.detach().clone() for n, t in self.oracle.names.items() if t is not None}

    def emit(self, statement):
        """Runs the statement and appends it, as an expect_error when PyTorch refuses it."""
        before = self.values()
        for t in self.oracle.names.values():
            oracle.is_leaf(t)  # brings views of what was written to up to date: else PyTorch may take one for a leaf
        try:
            self.oracle.run(statement)
        except (RuntimeError, IndexError, ValueError) as error:
            self.body.append(self.refusal(statement, error, before))
            self.failed |= "do" in statement and "roots" in statement
            return False
        self.body.append(statement)
        self.create_graph |= statement.get("create_graph", False)
        self.read.update(statement.get("in", []))
        if statement.get("do") == "grad":
            self.derived += [self.tensor(n) for n in statement["out"] if n in self.oracle.names]
        if any(too_large(t) for t in self.oracle.names.values() if t is not None):
            raise Discard("too large")
        return True

    def refusal(self, statement, error, before):
        """The expect_error; Discard for an error that does not apply to other engines."""
        categories = oracle.category(error)
        if categories is None:
            raise Discard(f"{statement.get('op', statement.get('do'))}: {str(error)[:120]}") from error
        after = self.values()
        if any(not torch.equal(t, after[n]) for n, t in before.items()):
            raise Discard("refused, but something was written") from error
        if "roots" in statement:
            reason = oracle.peculiar(categories[0], self.oracle.get(statement["roots"]))
            if reason:
                raise Discard(reason) from error
            if categories == ["view_inplace_forbidden"]:
                categories = [*categories, "version_mismatch"]  # a saved view: both are true
        elif categories[0] in ("shape_mismatch", "overlapping_write") and self.shares_memory(statement):
            categories = [categories[0], "shape_mismatch", "overlapping_write"]  # which is noticed first
        also = sorted(set(categories[1:]) - {categories[0]})
        return {"do": "expect_error", "category": categories[0], **({"also": also} if also else {}),
                "body": [statement]}

    def shares_memory(self, statement):
        written, *read = (t for t in self.oracle.get(statement.get("in", [])) if t is not None)
        return any(overlap.same_memory(written, t) for t in read)

    def block(self, kind, steps):
        """{"do": kind, "body": ...} of some steps."""
        outer, self.body = self.body, []
        with torch.no_grad() if kind == "no_grad" else torch.enable_grad():
            for _ in range(steps):
                self.step()
        outer.append({"do": kind, "body": self.body})
        self.body = outer

    def step(self):
        if self.failed:
            return
        for _ in range(20):
            if statements.draw(self):
                return

    # ---- the end -------------------------------------------------------------------------------------------

    def cotangent(self, root):
        t = self.tensor(root)
        if t.numel() == 1 and self.random.random() < 0.5:
            return None
        return self.new_input(tuple(t.shape), t.dtype, letter="ct")

    def check(self):
        check = {"do": "check", "values": {}, "grads": {}, "requires_grad": {}, "is_leaf": {}}
        for name, t in self.oracle.names.items():
            if t is None or name.startswith("ct"):
                continue
            check["values"][name] = t.detach().clone()
            if not self.create_graph:
                check["requires_grad"][name] = t.requires_grad
            if oracle.is_leaf(t) is None:
                continue
            if not self.create_graph:
                check["is_leaf"][name] = t.is_leaf
            if not self.failed and t.requires_grad and (t.is_leaf or t.retains_grad):
                grad = t.grad
                if grad is not None and too_large(grad):
                    raise Discard("a gradient too large")
                check["grads"][name] = None if grad is None else grad.detach().clone()
        self.body.append(check)

    def finish(self):
        roots = [n for n, t in self.oracle.names.items()
                 if t is not None and t.is_floating_point() and t.requires_grad and oracle.is_leaf(t) is False]
        if roots and not self.failed:
            roots = self.random.sample(roots, min(len(roots), self.random.randint(1, 3)))
            self.emit({"do": "backward", "roots": roots, "cotangents": [self.cotangent(r) for r in roots]})
        self.check()

    def case(self, suite):
        """The case with keys in place of tensors."""
        def stored(statement):
            if statement.get("do") == "check":
                return {k: {n: suite.key(t) for n, t in v.items()} if k in ("values", "grads") else v
                        for k, v in statement.items() if v}
            if "body" in statement:
                return {**statement, "body": [stored(s) for s in statement["body"]]}
            return statement

        with_float32 = any(t.dtype == torch.float32 for t in self.data.values())
        tolerance = {"tolerance": {"rtol": 1e-4, "atol": 1e-5}} if with_float32 else {}
        inputs = [{**e, "tensor": suite.key(self.data[e["name"]])} for e in self.inputs]
        return {"name": self.name, "inputs": inputs,
                "ops": [stored(s) for s in self.case_body], **tolerance}


def generate(seed):
    program = Program(f"seed.{seed}", seed)
    for _ in range(program.random.randint(3, 14)):
        program.step()
    program.finish()
    return program
