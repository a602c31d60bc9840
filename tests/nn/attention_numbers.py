"""Writes attention_numbers.h: PyTorch's numbers for the cases of attention_numbers_test.cc, which have the same names.

    python3 attention_numbers.py > attention_numbers.h

Parameter j, in the order of registration, is 0.5 sin(0.7 i + j), input k is cos(0.3 i + k), all in float64. A tensor
enters the table as its mark, the sum of its elements times cos(0.5 i). The loss is the sum of output k times sin(i + k).
A row has the sorted keys of the state, then marks of outputs, of gradients of inputs, and of gradients of parameters.
"""
import math
import warnings

import torch
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64)

BATCH, QUERIES, KEYS, WIDTH, HEADS = 2, 3, 4, 8, 2


def filled(shape, f):
    return torch.tensor([f(i) for i in range(math.prod(shape))]).reshape(shape)


def mark(x):
    x = x.detach()
    return (x * filled(x.shape, lambda i: math.cos(0.5 * i))).sum().item()


def bits(*shape):
    """A bool mask that leaves out every third key, never the first."""
    return filled(shape, lambda i: float(i % 3 == 1)).bool()


def scores(*shape):
    return filled(shape, lambda i: math.sin(2.0 * i))


def row(name, module, shapes, run):
    parameters = list(module.parameters())
    with torch.no_grad():
        for j, p in enumerate(parameters):
            p.copy_(filled(p.shape, lambda i: 0.5 * math.sin(0.7 * i + j)))
    inputs = [filled(s, lambda i: math.cos(0.3 * i + k)).requires_grad_() for k, s in enumerate(shapes)]
    outputs = run(module, *inputs)
    outputs = [x for x in (outputs if isinstance(outputs, tuple) else (outputs,)) if x is not None]
    sum((x * filled(x.shape, lambda i: math.sin(i + k))).sum() for k, x in enumerate(outputs)).backward()
    marks = [mark(x) for x in outputs] + [mark(x.grad) for x in inputs + parameters]
    keys = " ".join(sorted(module.state_dict()))
    print(f'    {{"{name}",\n     "{keys}",\n     {{{", ".join(f"{m:.9g}" for m in marks)}}}}},')


def mha(name, shapes, run, **options):
    row(name, nn.MultiheadAttention(WIDTH, HEADS, **options), shapes, run)


Q, QB, QU = (QUERIES, BATCH, WIDTH), (BATCH, QUERIES, WIDTH), (QUERIES, WIDTH)
K, KB, KU = (KEYS, BATCH, WIDTH), (BATCH, KEYS, WIDTH), (KEYS, WIDTH)
CAUSAL = nn.Transformer.generate_square_subsequent_mask(QUERIES)


def attention():
    mha("self-attention", [Q], lambda m, x: m(x, x, x))
    mha("self-attention without weights", [QB], lambda m, x: m(x, x, x, need_weights=False), batch_first=True)
    mha("keys are values", [Q, K], lambda m, q, k: m(q, k, k, average_attn_weights=False))
    mha("three inputs", [QB, KB, KB], lambda m, q, k, v: m(q, k, v), batch_first=True)
    mha("other widths", [Q, (KEYS, BATCH, 5), (KEYS, BATCH, 6)], lambda m, q, k, v: m(q, k, v), kdim=5, vdim=6)
    mha("no bias", [Q, K], lambda m, q, k: m(q, k, k), bias=False)
    mha("further keys", [Q, K, K],
        lambda m, q, k, v: m(q, k, v, key_padding_mask=bits(BATCH, KEYS), attn_mask=bits(QUERIES, KEYS)),
        add_bias_kv=True, add_zero_attn=True)
    mha("added masks", [QB, KB],
        lambda m, q, k: m(q, k, k, key_padding_mask=scores(BATCH, KEYS), need_weights=False,
                          attn_mask=scores(BATCH * HEADS, QUERIES, KEYS)), batch_first=True)
    mha("bool and added mask", [Q, K],
        lambda m, q, k: m(q, k, k, key_padding_mask=bits(BATCH, KEYS), attn_mask=scores(QUERIES, KEYS)))
    mha("bool mask of each head", [Q, K],
        lambda m, q, k: m(q, k, k, need_weights=False, attn_mask=bits(BATCH * HEADS, QUERIES, KEYS)))
    mha("causal", [QB], lambda m, x: m(x, x, x, need_weights=False, attn_mask=CAUSAL, is_causal=True),
        batch_first=True)
    mha("causal with weights", [Q], lambda m, x: m(x, x, x, attn_mask=CAUSAL, is_causal=True))
    mha("no batch", [QU, KU],
        lambda m, q, k: m(q, k, k, key_padding_mask=bits(KEYS), attn_mask=bits(HEADS, QUERIES, KEYS),
                          average_attn_weights=False))
    mha("no batch, other widths, further keys", [QU, (KEYS, 5), (KEYS, 6)],
        lambda m, q, k, v: m(q, k, v, need_weights=False), kdim=5, vdim=6, add_bias_kv=True, add_zero_attn=True)
    mha("static keys and values", [Q, (BATCH * HEADS, KEYS, WIDTH // HEADS), (BATCH * HEADS, KEYS, WIDTH // HEADS)],
        lambda m, q, k, v: F.multi_head_attention_forward(
            q, q.detach(), q.detach(), WIDTH, HEADS, m.in_proj_weight, m.in_proj_bias, None, None, False, 0.0,
            m.out_proj.weight, m.out_proj.bias, static_k=k, static_v=v))


def layers():
    small = dict(dim_feedforward=6, dropout=0.0)
    row("encoder layer", nn.TransformerEncoderLayer(WIDTH, HEADS, **small), [Q],
        lambda m, x: m(x, src_key_padding_mask=bits(BATCH, QUERIES)))
    row("encoder layer, norm first", nn.TransformerEncoderLayer(
        WIDTH, HEADS, activation="gelu", norm_first=True, batch_first=True, layer_norm_eps=1e-3, **small), [QB],
        lambda m, x: m(x, src_mask=CAUSAL, is_causal=True))
    row("encoder layer, no bias", nn.TransformerEncoderLayer(WIDTH, HEADS, activation=F.silu, bias=False, **small),
        [QU], lambda m, x: m(x, src_mask=bits(QUERIES, QUERIES)))
    masks = dict(tgt_mask=CAUSAL, memory_mask=bits(QUERIES, KEYS), memory_key_padding_mask=scores(BATCH, KEYS))
    row("decoder layer", nn.TransformerDecoderLayer(WIDTH, HEADS, **small), [Q, K],
        lambda m, x, y: m(x, y, tgt_key_padding_mask=scores(BATCH, QUERIES), **masks))
    row("decoder layer, norm first", nn.TransformerDecoderLayer(
        WIDTH, HEADS, norm_first=True, batch_first=True, activation="gelu", bias=False, **small), [QB, KB],
        lambda m, x, y: m(x, y, tgt_mask=CAUSAL, tgt_is_causal=True))
    row("encoder", nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, **small), 2, nn.LayerNorm(WIDTH)),
        [Q], lambda m, x: m(x, mask=bits(QUERIES, QUERIES)))
    row("decoder", nn.TransformerDecoder(nn.TransformerDecoderLayer(WIDTH, HEADS, **small), 2), [Q, K],
        lambda m, x, y: m(x, y, **masks))
    whole = dict(d_model=WIDTH, nhead=HEADS, num_encoder_layers=2, num_decoder_layers=1, **small)
    row("transformer", nn.Transformer(batch_first=True, **whole), [KB, QB],
        lambda m, x, y: m(x, y, tgt_mask=CAUSAL, src_key_padding_mask=bits(BATCH, KEYS),
                          memory_key_padding_mask=bits(BATCH, KEYS)))
    row("transformer, no batch", nn.Transformer(norm_first=True, activation="gelu", **whole), [KU, QU],
        lambda m, x, y: m(x, y, src_mask=scores(KEYS, KEYS), memory_mask=bits(QUERIES, KEYS)))


def cells():
    x, h = (BATCH, 5), (BATCH, WIDTH)
    row("RNN cell", nn.RNNCell(5, WIDTH), [x, h], lambda m, x, h: m(x, h))
    row("RNN cell, relu", nn.RNNCell(5, WIDTH, nonlinearity="relu", bias=False), [x], lambda m, x: m(x))
    row("LSTM cell", nn.LSTMCell(5, WIDTH), [x, h, h], lambda m, x, h, c: m(x, (h, c)))
    row("LSTM cell, no batch", nn.LSTMCell(5, WIDTH, bias=False), [(5,)], lambda m, x: m(x))
    row("GRU cell", nn.GRUCell(5, WIDTH), [x, h], lambda m, x, h: m(x, h))
    row("GRU cell, no batch", nn.GRUCell(5, WIDTH, bias=False), [(5,), (WIDTH,)], lambda m, x, h: m(x, h))


print("// Written by attention_numbers.py, which says what the numbers are.\n#pragma once\n\n#include <vector>\n")
print("struct AttentionNumbers {\n  const char *name, *keys;\n  std::vector<double> marks;\n};\n")
print("// clang-format off\ninline const std::vector<AttentionNumbers>& attention_numbers() {")
print("  static const std::vector<AttentionNumbers> numbers{")
attention()
layers()
cells()
print("  };\n  return numbers;\n}\n// clang-format on")
