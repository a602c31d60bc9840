"""Writes PyTorch's numbers for tests/nn/layers_test.cc:  python layer_numbers.py >layer_numbers.json

A case is a module and its inputs. Values are formulas of the position i of an element and the number k of the tensor,
which the test computes, too; a result is kept as its shape and one number, sum(result * cos(0.5 i)). All in float64.

Inputs, each a kind and a shape:
  x  1.5 cos(0.37 i + k) + 0.01 i       p  0.5 + 0.45 sin(0.7 i + k)       s  1, or -1 for every third
  cN  classes (7 i + 3 k) mod N         l  log_softmax of x over the last dim       =  these integers
X, P and L are the same and require a gradient.
Parameter number k is 0.5 sin(0.7 i + k). Each module is called twice in training, the loss is
sum(result * sin(0.9 i + 1)), then once in eval().
"""

import json
import math

import torch
from torch import nn

torch.set_default_dtype(torch.float64)


def counted(shape):
    return torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape)


def made(spec, k):
    kind, *shape = spec.lower().split()
    if kind == "=":
        return torch.tensor([int(s) for s in shape])
    shape = [int(s) for s in shape]
    i = counted(shape)
    if kind == "x":
        return 1.5 * torch.cos(0.37 * i + k) + 0.01 * i
    if kind == "p":
        return 0.5 + 0.45 * torch.sin(0.7 * i + k)
    if kind == "s":
        return torch.where(i % 3 == 0, -1.0, 1.0)
    if kind == "l":
        return (1.5 * torch.cos(0.37 * i + k) + 0.01 * i).log_softmax(-1)
    return (7 * i.long() + 3 * k) % int(kind[1:])


def mark(t):
    t = t.detach().double()
    return list(t.shape), float(f"{(t * torch.cos(0.5 * counted(t.shape))).sum():.12g}")


def first(result):
    return result[0] if isinstance(result, tuple) else result


def numbers(module, specs):
    for k, parameter in enumerate(module.parameters()):
        with torch.no_grad():
            parameter.copy_(0.5 * torch.sin(0.7 * counted(parameter.shape) + k))
    inputs = [made(spec, k) for k, spec in enumerate(specs)]
    inputs = [x.detach().requires_grad_() if spec[0].isupper() else x for x, spec in zip(inputs, specs)]
    for _ in range(2):
        module.zero_grad()
        for x in inputs:
            x.grad = None
        result = first(module(*inputs))
        if result.requires_grad:
            (result * torch.sin(0.9 * counted(result.shape) + 1)).sum().backward()
    case = {
        "inputs": specs,
        "output": mark(result),
        "gradients": [mark(x.grad) for x in inputs if x.grad is not None],
        "parameters": {n: mark(p.grad) for n, p in module.named_parameters() if p.grad is not None},
        "buffers": {n: mark(b) for n, b in module.named_buffers()},
        "keys": sorted(module.state_dict()),
    }
    module.eval()
    case["eval"] = mark(first(module(*inputs)))
    return case


class Unpooled(nn.Module):
    """A pool and its inverse."""

    def __init__(self, dims, size):
        super().__init__()
        self.pool = getattr(nn, f"MaxPool{dims}d")(2, stride=2, return_indices=True)
        self.unpool = getattr(nn, f"MaxUnpool{dims}d")(2, stride=2)
        self.size = size

    def forward(self, x):
        return self.unpool(*self.pool(x), output_size=self.size)


class Sized(nn.Module):
    """A transposed convolution to a size."""

    def __init__(self):
        super().__init__()
        self.conv = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)

    def forward(self, x):
        return self.conv(x, output_size=[6, 7])


def samples(*shape):
    return 0.5 + 0.49 * torch.sin(1.3 * counted(shape))


w3 = torch.tensor([0.5, 1.5, 2.0])
w4 = torch.tensor([0.5, 1.5, 2.0, 0.25])

CASES = {
    # activations
    "ReLU": (nn.ReLU(), ["X 3 5"]),
    "ReLU6": (nn.ReLU6(), ["X 3 5"]),
    "SELU": (nn.SELU(), ["X 3 5"]),
    "ELU": (nn.ELU(0.7), ["X 3 5"]),
    "CELU": (nn.CELU(0.5), ["X 3 5"]),
    "LeakyReLU": (nn.LeakyReLU(0.2), ["X 3 5"]),
    "Hardtanh": (nn.Hardtanh(-0.5, 0.8), ["X 3 5"]),
    "RReLU": (nn.RReLU(0.2, 0.2), ["X 3 5"]),
    "GELU": (nn.GELU(), ["X 3 5"]),
    "GELU tanh": (nn.GELU("tanh"), ["X 3 5"]),
    "GLU": (nn.GLU(1), ["X 3 6"]),
    "Hardshrink": (nn.Hardshrink(0.6), ["X 3 5"]),
    "Softshrink": (nn.Softshrink(0.6), ["X 3 5"]),
    "Softplus": (nn.Softplus(2.0, 1.5), ["X 3 5"]),
    "PReLU": (nn.PReLU(), ["X 3 5"]),
    "PReLU channels": (nn.PReLU(5, 0.1), ["X 3 5"]),
    "Threshold": (nn.Threshold(0.1, 20), ["X 3 5"]),
    "Softmax": (nn.Softmax(0), ["X 3 5"]),
    "Softmin": (nn.Softmin(1), ["X 3 5"]),
    "LogSoftmax": (nn.LogSoftmax(1), ["X 3 5"]),
    "Softmax2d": (nn.Softmax2d(), ["X 2 3 2 2"]),
    "Hardsigmoid": (nn.Hardsigmoid(), ["X 3 5"]),
    "Hardswish": (nn.Hardswish(), ["X 3 5"]),
    "LogSigmoid": (nn.LogSigmoid(), ["X 3 5"]),
    "Mish": (nn.Mish(), ["X 3 5"]),
    "SiLU": (nn.SiLU(), ["X 3 5"]),
    "Sigmoid": (nn.Sigmoid(), ["X 3 5"]),
    "Softsign": (nn.Softsign(), ["X 3 5"]),
    "Tanh": (nn.Tanh(), ["X 3 5"]),
    "Tanhshrink": (nn.Tanhshrink(), ["X 3 5"]),
    # linear
    "Linear": (nn.Linear(4, 3), ["X 2 5 4"]),
    "Linear no bias": (nn.Linear(4, 3, bias=False), ["X 5 4"]),
    "Bilinear": (nn.Bilinear(4, 3, 2), ["X 5 4", "X 5 3"]),
    # norms
    "BatchNorm1d": (nn.BatchNorm1d(3), ["X 4 3"]),
    "BatchNorm1d length": (nn.BatchNorm1d(3, momentum=0.3, eps=1e-3), ["X 4 3 5"]),
    "BatchNorm2d": (nn.BatchNorm2d(3, affine=False), ["X 2 3 4 4"]),
    "BatchNorm2d cumulative": (nn.BatchNorm2d(3, momentum=None), ["X 2 3 4 4"]),
    "BatchNorm3d": (nn.BatchNorm3d(2, track_running_stats=False), ["X 2 2 2 3 3"]),
    "InstanceNorm1d": (nn.InstanceNorm1d(3), ["X 2 3 5"]),
    "InstanceNorm1d no batch": (nn.InstanceNorm1d(3, affine=True), ["X 3 5"]),
    "InstanceNorm2d": (nn.InstanceNorm2d(3, affine=True, track_running_stats=True), ["X 2 3 3 4"]),
    "InstanceNorm3d": (nn.InstanceNorm3d(2, eps=1e-2), ["X 2 2 2 2 3"]),
    "GroupNorm": (nn.GroupNorm(2, 6), ["X 2 6 3"]),
    "LayerNorm": (nn.LayerNorm([3, 4]), ["X 2 3 4"]),
    "LayerNorm no bias": (nn.LayerNorm(4, bias=False), ["X 2 3 4"]),
    "LayerNorm plain": (nn.LayerNorm(4, elementwise_affine=False), ["X 2 3 4"]),
    "RMSNorm": (nn.RMSNorm([4], eps=1e-3), ["X 2 3 4"]),
    "LocalResponseNorm": (nn.LocalResponseNorm(3, alpha=0.1, k=2.0), ["X 2 5 4"]),
    # With more channels than (size + 1) / 2, PyTorch's CrossMapLRN2d counts channel 0 in the sums of all further ones;
    # its gradients are those of other sums.
    "CrossMapLRN2d": (nn.CrossMapLRN2d(5, alpha=0.1), ["x 2 3 2 2"]),
    "CrossMapLRN2d even": (nn.CrossMapLRN2d(4, alpha=0.1, beta=0.6), ["x 2 2 2 2"]),
    # convolutions
    "Conv1d": (nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), ["X 2 4 7"]),
    "Conv2d": (nn.Conv2d(2, 3, (3, 2), padding=(1, 0), dilation=(1, 2), bias=False), ["X 2 2 5 6"]),
    "Conv2d same": (nn.Conv2d(2, 3, 4, padding="same"), ["X 2 2 5 6"]),
    "Conv3d": (nn.Conv3d(2, 2, 2), ["X 1 2 3 3 3"]),
    "Conv1d circular": (nn.Conv1d(2, 3, 3, padding=2, padding_mode="circular"), ["X 2 2 5"]),
    "Conv2d reflect": (nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode="reflect"), ["X 2 2 4 5"]),
    "Conv2d replicate": (nn.Conv2d(2, 3, 4, padding="same", padding_mode="replicate"), ["X 2 2 4 5"]),
    "ConvTranspose1d": (nn.ConvTranspose1d(4, 2, 3, stride=2, groups=2), ["X 2 4 5"]),
    "ConvTranspose2d": (
        nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1, bias=False),
        ["X 2 2 3 4"],
    ),
    "ConvTranspose2d size": (Sized(), ["X 2 2 3 4"]),
    "ConvTranspose3d": (nn.ConvTranspose3d(2, 2, 2, dilation=2), ["X 1 2 2 2 3"]),
    # pools
    "MaxPool1d": (nn.MaxPool1d(3, stride=2, padding=1), ["X 2 3 7"]),
    "MaxPool2d": (nn.MaxPool2d((3, 2), dilation=(1, 2), ceil_mode=True), ["X 2 2 6 7"]),
    "MaxPool3d": (nn.MaxPool3d(2), ["X 1 2 4 4 4"]),
    "AvgPool1d": (nn.AvgPool1d(3, stride=2, padding=1, count_include_pad=False), ["X 2 3 7"]),
    "AvgPool2d": (nn.AvgPool2d(2, stride=1, padding=1, divisor_override=3), ["X 2 2 4 5"]),
    "AvgPool3d": (nn.AvgPool3d(2), ["X 1 2 4 4 4"]),
    "AdaptiveAvgPool1d": (nn.AdaptiveAvgPool1d(3), ["X 2 3 7"]),
    "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d((3, None)), ["X 2 2 5 4"]),
    "AdaptiveAvgPool3d": (nn.AdaptiveAvgPool3d(2), ["X 1 2 3 4 5"]),
    "AdaptiveMaxPool1d": (nn.AdaptiveMaxPool1d(3), ["X 2 3 7"]),
    "AdaptiveMaxPool2d": (nn.AdaptiveMaxPool2d((3, None)), ["X 2 2 5 4"]),
    "AdaptiveMaxPool3d": (nn.AdaptiveMaxPool3d(2), ["X 1 2 3 4 5"]),
    "FractionalMaxPool2d": (
        nn.FractionalMaxPool2d(2, output_size=(3, 4), _random_samples=samples(2, 3, 2)),
        ["X 2 3 7 9"],
    ),
    "FractionalMaxPool2d ratio": (
        nn.FractionalMaxPool2d((3, 2), output_ratio=(0.5, 0.6), _random_samples=samples(2, 3, 2)),
        ["X 2 3 7 9"],
    ),
    "FractionalMaxPool3d": (
        nn.FractionalMaxPool3d(2, output_size=(2, 3, 1), _random_samples=samples(1, 2, 3)),
        ["X 1 2 5 6 4"],
    ),
    "LPPool1d": (nn.LPPool1d(2, 3, stride=2), ["P 2 3 7"]),
    "LPPool2d": (nn.LPPool2d(1.5, (2, 3), ceil_mode=True), ["P 2 2 5 6"]),
    "LPPool3d": (nn.LPPool3d(2, 2), ["P 1 2 2 4 4"]),
    "MaxUnpool1d": (Unpooled(1, None), ["X 2 3 6"]),
    "MaxUnpool2d": (Unpooled(2, [2, 2, 5, 7]), ["X 2 2 5 7"]),
    "MaxUnpool3d": (Unpooled(3, [5, 4, 4]), ["X 1 2 5 4 4"]),
    "Upsample": (nn.Upsample(scale_factor=2, mode="bilinear"), ["X 1 2 3 3"]),
    # padding
    "ReflectionPad1d": (nn.ReflectionPad1d(2), ["X 2 3 4"]),
    "ReflectionPad2d": (nn.ReflectionPad2d((1, 2, 0, 1)), ["X 1 2 3 4"]),
    "ReflectionPad3d": (nn.ReflectionPad3d(1), ["X 1 2 2 3 3"]),
    "ReplicationPad1d": (nn.ReplicationPad1d((1, 3)), ["X 2 3 4"]),
    "ReplicationPad2d": (nn.ReplicationPad2d(1), ["X 1 2 3 4"]),
    "ReplicationPad3d": (nn.ReplicationPad3d(1), ["X 1 2 2 3 3"]),
    "CircularPad2d": (nn.CircularPad2d((1, 2, 0, 1)), ["X 1 2 3 4"]),
    "ZeroPad1d": (nn.ZeroPad1d(2), ["X 2 3 4"]),
    "ZeroPad2d": (nn.ZeroPad2d((1, -1, 0, 1)), ["X 1 2 3 4"]),
    "ZeroPad3d": (nn.ZeroPad3d(1), ["X 1 2 2 3 3"]),
    "ConstantPad1d": (nn.ConstantPad1d(2, 3.5), ["X 2 3 4"]),
    "ConstantPad2d": (nn.ConstantPad2d((1, 2, 0, 1), -1), ["X 1 2 3 4"]),
    "ConstantPad3d": (nn.ConstantPad3d(1, 0.5), ["X 1 2 2 3 3"]),
    # rearranging
    "Unfold": (nn.Unfold((2, 3), padding=1, stride=(2, 1)), ["X 2 2 4 5"]),
    "Fold": (nn.Fold((4, 5), (2, 3), stride=(2, 1)), ["X 2 12 6"]),
    "PixelShuffle": (nn.PixelShuffle(2), ["X 2 8 3 2"]),
    "PixelUnshuffle": (nn.PixelUnshuffle(2), ["X 2 2 4 6"]),
    "ChannelShuffle": (nn.ChannelShuffle(2), ["X 2 6 3"]),
    # embeddings
    "Embedding": (nn.Embedding(6, 3, padding_idx=1, scale_grad_by_freq=True), ["c6 2 4"]),
    "Embedding max_norm": (nn.Embedding(6, 3, max_norm=0.4, norm_type=1.0), ["= 1 4 1 2"]),
    "EmbeddingBag": (nn.EmbeddingBag(6, 3, mode="sum", padding_idx=2), ["c6 3 4"]),
    "EmbeddingBag offsets": (nn.EmbeddingBag(6, 3, mode="max"), ["c6 7", "= 0 3 3"]),
    # distances
    "CosineSimilarity": (nn.CosineSimilarity(dim=0), ["X 4 3", "X 4 3"]),
    "PairwiseDistance": (nn.PairwiseDistance(p=3.0, keepdim=True), ["X 4 3", "X 4 3"]),
    # losses
    "L1Loss": (nn.L1Loss(reduction="sum"), ["X 4 3", "X 4 3"]),
    "MSELoss": (nn.MSELoss(), ["X 4 3", "X 4 3"]),
    "SmoothL1Loss": (nn.SmoothL1Loss(beta=0.5), ["X 4 3", "X 4 3"]),
    "HuberLoss": (nn.HuberLoss(reduction="none", delta=0.5), ["X 4 3", "X 4 3"]),
    "CrossEntropyLoss": (nn.CrossEntropyLoss(w3, ignore_index=2, label_smoothing=0.1), ["X 5 3", "c3 5"]),
    "CrossEntropyLoss sum": (nn.CrossEntropyLoss(reduction="sum"), ["X 2 3 4", "c3 2 4"]),
    "NLLLoss": (nn.NLLLoss(w3), ["L 5 3", "c3 5"]),
    "BCELoss": (nn.BCELoss(w3), ["P 5 3", "p 5 3"]),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss(pos_weight=w3), ["X 5 3", "p 5 3"]),
    # PyTorch's gradient is that by the logits under the log_softmax (ops/ctc_loss.h).
    "CTCLoss": (
        nn.CTCLoss(blank=1, reduction="sum"),
        ["l 6 2 4", "= 0 2 3 0 2", "= 6 5", "= 3 2"],
    ),
    "KLDivLoss": (nn.KLDivLoss(reduction="batchmean", log_target=True), ["L 4 3", "l 4 3"]),
    "PoissonNLLLoss": (nn.PoissonNLLLoss(full=True), ["X 4 3", "p 4 3"]),
    "GaussianNLLLoss": (nn.GaussianNLLLoss(full=True), ["X 4 3", "X 4 3", "P 4 3"]),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss(margin=0.7), ["X 4 3", "s 4 3"]),
    "MarginRankingLoss": (nn.MarginRankingLoss(margin=0.3), ["X 6", "X 6", "s 6"]),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss(margin=0.1), ["X 4 3", "X 4 3", "s 4"]),
    "TripletMarginLoss": (nn.TripletMarginLoss(margin=0.8, swap=True), ["X 4 3", "X 4 3", "X 4 3"]),
    "TripletMarginWithDistanceLoss": (
        nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1), margin=0.8),
        ["X 4 3", "X 4 3", "X 4 3"],
    ),
    "MultiMarginLoss": (nn.MultiMarginLoss(p=2, margin=0.9, weight=w3), ["X 5 3", "c3 5"]),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss(), ["X 4", "= 2 0 -1 1"]),
    "SoftMarginLoss": (nn.SoftMarginLoss(), ["X 4 3", "s 4 3"]),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss(w3), ["X 4 3", "p 4 3"]),
    "AdaptiveLogSoftmaxWithLoss": (
        nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6], div_value=2.0, head_bias=True),
        ["X 5 8", "c10 5"],
    ),
}

if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(numbers(*case))}" for name, case in CASES.items()]
    print("{\n" + ",\n".join(lines) + "\n}")
