"""Peer side of //benchmarks:ops: the same rows (op_rows.py) in PyTorch, measured in the same way. One line of JSON per figure, with the keys of
the other side except those that need the table of arithmetic: rate, unit and share.
usage: ops.py [--threads N] [--filter TEXT] [--size N] [--backward] [--seconds S]"""
import argparse
import json
import time

import torch

from op_rows import TABLE, columns

BATCH, LEAST, WARM_UPS, SIZES = 50e-6, 3, 3, (1_000, 100_000, 10_000_000)


def size_of(word, n):
    return {"n": n, "c": columns(n), "r": n // columns(n)}.get(word) if word in "nrc" else int(word)


def values(kind, shape, n):
    if kind[0] == "i":
        return torch.randint(size_of(kind[1:], n), shape)
    if kind == "s":
        a = torch.randn(shape)
        return a @ a.mT / shape[-1] + torch.eye(shape[-1])
    return {"x": lambda: torch.randn(shape), "u": lambda: torch.rand(shape) * 0.9 + 0.05, "g": lambda: torch.rand(shape) + 1,
            "h": lambda: torch.randn(shape).bfloat16(), "d": lambda: torch.randn(shape, dtype=torch.float64),
            "l": lambda: torch.randint(-100, 100, shape), "b": lambda: torch.randn(shape) > 0}[kind]()


def operands(inputs, n, gradients):
    made = []
    for word in inputs.split():
        if word == "n":
            continue
        kind, dims = word.removeprefix("~").split(":")
        x = values(kind, [size_of(d, n) for d in dims.split(",")], n)
        made.append(x.requires_grad_(gradients and word[0] != "~" and x.is_floating_point()))
    return made


def median_seconds(prepare, run, budget):
    once = 0.0
    for _ in range(WARM_UPS):
        if once >= budget:
            break
        prepare(1)
        begin = time.perf_counter()
        run(0)
        once = time.perf_counter() - begin
    count, times = int(min(max(BATCH / once, 1), 64)), []
    begin = time.perf_counter()
    while len(times) < LEAST or time.perf_counter() - begin < budget:
        prepare(count)
        start = time.perf_counter()
        for i in range(count):
            run(i)
        times.append((time.perf_counter() - start) / count)
    return sorted(times)[len(times) // 2]


def first(result):
    return result if isinstance(result, torch.Tensor) else result[0]


def forward_seconds(inputs, function, n, budget):
    t = operands(inputs, n, False)
    return median_seconds(lambda count: None, lambda i: function(t, n), budget)


def backward_seconds(inputs, function, n, budget):
    t, results = operands(inputs, n, True), []
    wanted = [x for x in t if x.requires_grad]
    if not wanted:
        return None
    cotangent = torch.randn_like(first(function(t, n)).detach())

    def prepare(count):
        results.clear()
        results.extend(first(function(t, n)) for _ in range(count))

    return median_seconds(prepare, lambda i: torch.autograd.grad(results[i], wanted, cotangent), budget)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--filter", default="")
    parser.add_argument("--size", type=int, default=-1)
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.05)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    passes = [("backward", backward_seconds)] if options.backward else [("forward", forward_seconds), ("backward", backward_seconds)]
    for op, inputs, function in TABLE:
        if options.filter not in op:
            continue
        for n in SIZES if any(letter in inputs for letter in "nrc") else (0,):
            if options.size not in (-1, n):
                continue
            for name, measure in passes:
                seconds = measure(inputs, function, n, options.seconds)
                if seconds is not None:
                    print(json.dumps({"op": op, "inputs": inputs, "n": n, "pass": name, "threads": options.threads,
                                      "us": round(seconds * 1e6, 3)}), flush=True)


if __name__ == "__main__":
    main()
