"""Runs //benchmarks:ops and ops.py in turns and prints, for each op, size and pass, both times and the ratio ours / torch, the worst first;
then the geometric means. A time is the least of the rounds' medians: other load on a shared machine only adds.
usage: compare_ops.py OURS [--threads N] [--filter TEXT] [--size N] [--rounds R] [--seconds S] [--above RATIO]
OURS is the binary (bazel-bin/benchmarks/ops); run this with the Python that has torch. Exit status 1 if the two tables differ."""
import argparse
import json
import math
import os
import subprocess
import sys


def figures(command):
    """Microseconds by (op, operands, n, pass)."""
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {(f["op"], f["inputs"], f["n"], f["pass"]): f["us"] for f in map(json.loads, lines)}


def least(rounds):
    return {key: min(r[key] for r in rounds) for key in rounds[0]}


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ours")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--filter", default="")
    parser.add_argument("--size", type=int, nargs="*", default=[1_000, 100_000, 10_000_000, 0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--above", type=float, default=0, help="print only ratios above this one")
    options = parser.parse_args()
    shared = ["--threads", str(options.threads), "--filter", options.filter, "--seconds", str(options.seconds)]
    peer = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops.py")]
    ours, torch = {}, {}
    for size in options.size:
        sides = ([], [])
        for _ in range(options.rounds):
            sides[0].append(figures([options.ours, "--json", "--size", str(size), *shared]))
            sides[1].append(figures([*peer, "--size", str(size), *shared]))
        ours.update(least(sides[0]))
        torch.update(least(sides[1]))
    ratios = {key: ours[key] / torch[key] for key in ours.keys() & torch.keys()}
    print(f"{'op':22} {'pass':8} {'n':>9} {'ours us':>12} {'torch us':>12} {'ratio':>7}  operands")
    for key, ratio in sorted(ratios.items(), key=lambda item: -item[1]):
        if ratio > options.above:
            op, inputs, n, name = key
            print(f"{op:22} {name:8} {n:9} {ours[key]:12.2f} {torch[key]:12.2f} {ratio:7.2f}  {inputs}")
    for name in ("forward", "backward"):
        for size in options.size:
            found = [r for key, r in ratios.items() if key[2] == size and key[3] == name]
            print(f"geometric mean, {name}, n = {size}: {geometric_mean(found):.3f} of {len(found)} figures")
    print(f"geometric mean of all: {geometric_mean(list(ratios.values())):.3f}; above 2: {sum(r > 2 for r in ratios.values())} "
          f"of {len(ratios)}")
    differing = ours.keys() ^ torch.keys()
    for key in sorted(differing):
        print("only on one side:", *key, file=sys.stderr)
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
