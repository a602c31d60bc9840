#!/usr/bin/env python3
"""Random programs of views and writes in place, with PyTorch's verdict on each, as a conformance suite.

    python3 tests/conformance/generate_views --count 1000 --seed 7 --out /tmp      # needs an installed PyTorch
    ./bazelw run //tests/conformance -- /tmp/views_random.json --mode eager

A program makes views of leaves and of results, writes into some of them, reads others, switches gradient mode, calls
backward in between, and ends with a backward and a check of all values, gradients and flags. It is generated while
PyTorch executes it (oracle.py): each statement is drawn for the existing tensors, and a statement that PyTorch refuses
becomes an expect_error of its category. So every program has a verdict, and this code needs no rules for what is allowed.

Omitted are statements without a defined result: reading and writing overlapping memory where PyTorch does not notice,
values that are not finite or grow beyond LARGEST, and functions outside their domain. Such a statement is not drawn, or
the program is dropped. After a backward that fails, gradients are not compared: which of them were computed is not
specified.

Also omitted is what depends only on PyTorch's implementation (docs/compatibility.md, "Where results differ from
PyTorch"): strides of results that are not row-major and of dims of size 1, as_strided beyond the memory that its
operand shows, operands of two dtypes where a gradient needs one of them, indices and sources that a backward does not
need and that are written to later, retain_grad of views, a second backward where nothing was kept, cotangents that
became a .grad, and gradients of gradients with respect to tensors that were read before they wanted one.
"""

import argparse
import collections
import warnings

import torch

from suite import Suite
import program


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
            made = program.generate(seed)
            suite.cases.append(made.case(suite))
            count_statements(made.case_body, counts)
        except program.Discard as reason:
            dropped[str(reason)] += 1
        seed += 1
    suite.write(options.out)
    print(f"{len(suite.cases)} programs, {sum(dropped.values())} dropped")
    if options.verbose:
        for table in (counts, dropped):
            print(*(f"{n:7d} {what}" for what, n in table.most_common(150)), sep="\n")


if __name__ == "__main__":
    main()
