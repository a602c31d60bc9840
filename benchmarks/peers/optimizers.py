"""PyTorch's side of //benchmarks:optimizers: one step of each optimizer on the CPU, its fastest implementation.

usage: optimizers.py [--threads 2] [--names adam,muon,...]
Prints a JSON line each: step_ms is the median of the fastest of fused, foreach and for-loop, named by `how`; copy_ms is
that of a copy of as many floats.
"""

import argparse
import json
import statistics
import time

import torch


def shapes_of(over):
    if over == "flat":
        return [(1 << 22,)]
    layer = [(256, 768), (256,), (256, 256), (256,), (256,), (256,), (1024, 256), (1024,), (256, 1024), (256,), (256,), (256,)]
    return layer * 12 + [(512, 256), (128, 256), (256,), (256,)]


def median_ms(function, least=25):
    for _ in range(3):
        function()
    times = []
    end = time.perf_counter() + 0.5
    while len(times) < least or time.perf_counter() < end:
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


OPTIMIZERS = {
    "sgd": lambda params, **how: torch.optim.SGD(params, lr=1e-3, momentum=0.9, **how),
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adamax": torch.optim.Adamax,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "adagrad": torch.optim.Adagrad,
    "adadelta": torch.optim.Adadelta,
    "rmsprop": torch.optim.RMSprop,
    "rprop": torch.optim.Rprop,
    "asgd": torch.optim.ASGD,
    "adafactor": torch.optim.Adafactor,
    "muon": torch.optim.Muon,
}


def measure(over, name):
    shapes = [s for s in shapes_of(over) if name != "muon" or len(s) == 2]
    if not shapes:
        return
    numbers = sum(torch.Size(s).numel() for s in shapes)
    source, target = torch.zeros(numbers), torch.zeros(numbers)
    copy = median_ms(lambda: target.copy_(source))
    found = {}
    for how in ("fused", "foreach", "loop"):
        params = [torch.randn(s).requires_grad_() for s in shapes]
        for p in params:
            p.grad = torch.randn_like(p)
        try:
            optimizer = OPTIMIZERS[name](params, **({} if how == "loop" else {how: True}))
            found[how] = median_ms(optimizer.step)
        except (RuntimeError, TypeError):  # it has no such implementation
            continue
    how = min(found, key=found.get)
    line = {"bench": "optimizer", "name": name, "over": over, "tensors": len(shapes), "numbers": numbers}
    print(json.dumps(line | {"step_ms": round(found[how], 3), "how": how, "copy_ms": round(copy, 3)}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--names", default="")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for over in ("flat", "gpt"):
        for name in OPTIMIZERS:
            if not args.names or name in args.names.split(","):
                measure(over, name)


if __name__ == "__main__":
    main()
