"""Peer of //benchmarks:per_sample_gradients in PyTorch: the same network and sizes, torch.func.vmap(grad). usage: per_sample_gradients.py [--threads N] [--mode eager|compile|loop] [--batch N] [--steps N]
Prints one JSON line: median step in ms without the first three, the norm of all gradients of the last step."""
import argparse, json, statistics, time
import torch, torch.nn as nn, torch.nn.functional as F
from torch.func import functional_call, grad, vmap
p = argparse.ArgumentParser()
p.add_argument("--threads", type=int, default=2); p.add_argument("--mode", default="eager", choices=["eager", "compile", "loop"])
p.add_argument("--batch", type=int, default=64); p.add_argument("--steps", type=int, default=15); a = p.parse_args()
torch.set_num_threads(a.threads); torch.manual_seed(0)
class Model(nn.Module):
    def __init__(s):
        super().__init__()
        s.conv1, s.conv2, s.conv3 = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1), nn.Conv2d(64, 64, 3, padding=1)
        s.fc = nn.Linear(64 * 4 * 4, 10)
    def forward(s, x):
        for conv in (s.conv1, s.conv2, s.conv3): x = F.max_pool2d(F.relu(conv(x)), 2)
        return s.fc(x.flatten(1))
model = Model(); parameters = {k: v.detach() for k, v in model.named_parameters()}
x, target = torch.randn(a.batch, 3, 32, 32), torch.randint(10, (a.batch,))
def loss(parameters, x, target): return F.cross_entropy(functional_call(model, parameters, (x.unsqueeze(0),)), target.unsqueeze(0))
gradient = grad(loss); mapped = vmap(gradient, in_dims=(None, 0, 0))
def loop(parameters, x, target):
    each = [gradient(parameters, x[k], target[k]) for k in range(len(x))]
    return {k: torch.stack([g[k] for g in each]) for k in parameters}
step = loop if a.mode == "loop" else torch.compile(mapped) if a.mode == "compile" else mapped
times = []
for i in range(a.steps):
    begin = time.perf_counter(); all = step(parameters, x, target); ms = (time.perf_counter() - begin) * 1e3
    if i >= 3: times.append(ms)
norm = sum(g.square().sum().double() for g in all.values()).sqrt().item()
print(json.dumps(dict(bench="per_sample_gradients", mode=a.mode, batch=a.batch, step_ms=round(statistics.median(times), 3), norm=round(norm, 4))))
