"""Peer of //benchmarks:lstm in PyTorch: the same model, sizes and order of lengths. usage: lstm.py [--threads N] [--mode eager|compile] [--steps N] [--lengths N] [--shortest N]
Prints one JSON line: median step in ms without the first of each length, loss of the last step."""
import argparse, json, random, statistics, time
import torch, torch.nn as nn, torch.nn.functional as F
p = argparse.ArgumentParser()
p.add_argument("--threads", type=int, default=2); p.add_argument("--mode", default="eager", choices=["eager", "compile"])
p.add_argument("--steps", type=int, default=120); p.add_argument("--lengths", type=int, default=26); p.add_argument("--shortest", type=int, default=8); a = p.parse_args()
torch.set_num_threads(a.threads); torch.manual_seed(0)
tokens, width, batch = 64, 128, 16
class Model(nn.Module):
    def __init__(s):
        super().__init__()
        s.embedding, s.lstm, s.head = nn.Embedding(tokens, width), nn.LSTM(width, width, batch_first=True), nn.Linear(width, tokens)
    def forward(s, x, y): return F.cross_entropy(s.head(s.lstm(s.embedding(x))[0]).flatten(0, 1), y.flatten())
model = Model(); optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
loss_of = torch.compile(model) if a.mode == "compile" else model
order, seen, times = random.Random(1), set(), []
for _ in range(a.steps):
    n = a.shortest + 2 * order.randrange(a.lengths); x, y = torch.randint(tokens, (batch, n)), torch.randint(tokens, (batch, n))
    begin = time.perf_counter(); optimizer.zero_grad(); loss = loss_of(x, y); loss.backward(); optimizer.step(); ms = (time.perf_counter() - begin) * 1e3
    if n in seen: times.append(ms)
    seen.add(n)
print(json.dumps(dict(bench="lstm", mode=a.mode, lengths=a.lengths, shortest=a.shortest, step_ms=round(statistics.median(times), 3), loss=round(loss.item(), 4))))
