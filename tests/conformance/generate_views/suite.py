"""Writes a conformance suite: NAME.json and NAME.safetensors (../suites/FORMAT.md)."""

import json
import struct

import torch

from oracle import DTYPES

TOLERANCE = {"float64": [1e-7, 1e-9], "float32": [1e-4, 1e-5]}


class Suite:
    """Cases being generated, and the tensors that they name by keys."""

    def __init__(self, name, seed):
        self.name, self.seed, self.cases = name, seed, []
        self.keys, self.blobs = {}, []

    def key(self, t):
        if t is None:
            return None
        entry = (DTYPES[t.dtype][1], tuple(t.shape), t.detach().numpy().tobytes())
        if entry not in self.keys:
            self.keys[entry] = str(len(self.keys) + 1)
            self.blobs.append(entry)
        return self.keys[entry]

    def write(self, folder):
        head = {"format": "retrograd-conformance/1", "suite": self.name, "seed": self.seed,
                "oracle": "torch " + torch.__version__.split("+")[0], "tensors": self.name + ".safetensors",
                "tolerance": TOLERANCE}
        with open(f"{folder}/{self.name}.json", "w", encoding="ascii") as f:
            f.write(json.dumps(head, separators=(",", ":"))[:-1] + ',\n"cases":[\n')
            f.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in self.cases) + "\n]}\n")
        # Wider elements first: every tensor is aligned.
        width = {"F64": 8, "I64": 8, "F32": 4, "BOOL": 1}
        order = sorted(range(len(self.blobs)), key=lambda i: -width[self.blobs[i][0]])
        header, at = {}, 0
        for i in order:
            dtype, shape, raw = self.blobs[i]
            header[str(i + 1)] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(raw)]}
            at += len(raw)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with open(f"{folder}/{self.name}.safetensors", "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + b"".join(self.blobs[i][2] for i in order))
