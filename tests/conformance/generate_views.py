#!/usr/bin/env python3
"""Random programs of views and writes in place, with PyTorch's verdict on each, as a conformance suite.

    python3 generate_views.py --count 1000 --seed 7 --out /tmp/views        # needs an installed PyTorch
    ./bazelw run //tests/conformance -- /tmp/views/views_random.json --mode eager

A program makes views of leaves and of results, writes into some of them, reads others, switches gradient mode, calls
backward in between, and ends with a backward and a check of all values, gradients and flags. It is generated while
PyTorch executes it (torch_oracle.py): each statement is drawn with the tensors at hand in view, and what PyTorch refuses
becomes an expect_error of its category. So every program has a verdict, and nothing is known here of what is allowed.

Left out is what has no defined result: reading and writing overlapping memory where PyTorch does not notice, values that
are not finite or grow beyond LARGEST, and functions outside their domain. Such a statement is not drawn, or the program
is dropped. After a backward that fails, gradients are not compared: which of them arrived before is not promised.

Left out as well is what only PyTorch's way of doing it decides (docs/design.md, section 12): strides of results that are
not row-major and of dims of size 1, as_strided beyond the memory that its operand shows, operands of two dtypes where a
gradient needs one of them, sources of index_add_ and index_copy_ that are written to later, retain_grad of views, a
second backward through a write to a view, and cotangents that became a .grad.
"""

import argparse
import collections
import math
import random
import warnings

import torch

from torch_oracle import Oracle, Suite, category, is_leaf
import torch_oracle
import view_statements

LARGEST = 1e4
SHAPES = [(), (3,), (4,), (6,), (2, 3), (3, 2), (2, 2), (1, 3), (4, 3), (2, 1, 3), (2, 2, 2), (2, 3, 2), (0,), (2, 0)]


class Discard(Exception):
    """The program cannot go on: it has no defined verdict."""


def too_large(t):
    with torch.no_grad():
        return t.is_floating_point() and t.numel() > 0 and not bool((t.abs() <= LARGEST).all())


class Program:
    """A program in the making: the case as it will be written, and PyTorch's tensors."""

    def __init__(self, name, seed):
        self.random = random.Random(seed)
        self.oracle = Oracle()
        self.inputs, self.body, self.data = [], [], {}
        self.case_body = self.body
        self.name, self.count, self.failed = name, 0, False
        self.create_graph = False  # then whether a zero gradient has a history is up to the engine
        self.derived = []          # gradients, whose strides are up to the engine
        shape = self.random.choice(SHAPES[:-2] if self.random.random() < 0.95 else SHAPES[-2:])
        self.shapes = [shape, shape, self.random.choice(SHAPES)]
        for _ in range(self.random.randint(2, 4)):
            self.new_input(self.random.choice(self.shapes), requires_grad=self.random.random() < 0.6)

    # ---- what statements are made of ---------------------------------------------------------------------

    def fresh(self, letter="v"):
        self.count += 1
        return f"{letter}{self.count}"

    def new_input(self, shape, dtype=None, requires_grad=False, values=None, letter="x"):
        """A leaf; strided in memory now and then."""
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
            is_leaf(t)  # brings views of what was written to up to date: else PyTorch may take one for a leaf
        try:
            self.oracle.run(statement)
        except (RuntimeError, IndexError, ValueError) as error:
            categories = category(error)
            if categories is None:
                raise Discard(f"{statement.get('op', statement.get('do'))}: {str(error)[:120]}") from error
            after = self.values()
            if any(not torch.equal(t, after[n]) for n, t in before.items()):
                raise Discard("refused, but something was written") from error
            roots = self.oracle.get(statement.get("roots", []))
            if categories == ["backward_twice_freed"] and torch_oracle.writes_through_views(roots):
                raise Discard("a write through a view keeps nothing, but is freed") from error
            if categories == ["backward_twice_freed"] and torch_oracle.keeps_numbers(roots):
                raise Discard("perhaps only a number was kept, and freed") from error
            if torch_oracle.leads_nowhere(roots):
                raise Discard("what nobody needs is not unpacked") from error
            if categories == ["overlapping_write"] and "do" in statement:
                raise Discard("the backward of a write into an expanded tensor is not supported") from error
            if categories == ["view_inplace_forbidden"] and "do" in statement:
                categories = [*categories, "version_mismatch"]  # a saved view: both are true
            if categories[0] in ("shape_mismatch", "overlapping_write") and self.shares_memory(statement):
                categories = [*categories, "shape_mismatch", "overlapping_write"]  # which is noticed first
            refused = {"do": "expect_error", "category": categories[0], "body": [statement]}
            if categories[1:]:
                refused["also"] = sorted(set(categories[1:]) - {categories[0]})
            self.body.append(refused)
            if statement.get("do") in ("backward", "grad"):
                self.failed = True
            return False
        self.body.append(statement)
        self.create_graph |= statement.get("create_graph", False)
        if statement.get("do") == "grad":
            self.derived += [self.tensor(n) for n in statement["out"] if n in self.oracle.names]
        if any(too_large(t) for t in self.oracle.names.values() if t is not None):
            raise Discard("too large")
        return True

    def shares_memory(self, statement):
        written, *read = (t for t in self.oracle.get(statement.get("in", [])) if t is not None)
        return any(view_statements.same_memory(written, t) for t in read)

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
            if view_statements.draw(self):
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
            if is_leaf(t) is None:
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
                 if t is not None and t.is_floating_point() and t.requires_grad and is_leaf(t) is False]
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
        return {"name": self.name, "modes": ["eager", "traced"], "inputs": inputs,
                "ops": [stored(s) for s in self.case_body], **tolerance}


def generate(seed):
    program = Program(f"seed.{seed}", seed)
    for _ in range(program.random.randint(3, 14)):
        program.step()
    program.finish()
    return program


def count_statements(statements, counts):
    for s in statements:
        counts[s.get("op") or s["do"]] += 1
        if s.get("do") == "expect_error":
            counts["expect_error " + s["category"]] += 1
        count_statements(s.get("body", []), counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--name", default="views_random")
    parser.add_argument("--out", default=".")
    parser.add_argument("--verbose", action="store_true", help="say what was drawn, and why programs were dropped")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    suite, counts, dropped = Suite(options.name, options.seed), collections.Counter(), collections.Counter()
    seed = options.seed
    while len(suite.cases) < options.count:
        try:
            program = generate(seed)
            suite.cases.append(program.case(suite))
            count_statements(program.case_body, counts)
        except Discard as reason:
            dropped[str(reason)] += 1
        seed += 1
    suite.write(options.out)
    print(f"{len(suite.cases)} programs, {sum(dropped.values())} dropped")
    if options.verbose:
        for table in (counts, dropped):
            print(*(f"{n:7d} {what}" for what, n in table.most_common(150)), sep="\n")


if __name__ == "__main__":
    main()
