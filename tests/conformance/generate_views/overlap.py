"""Which memory tensors show, and which writes have no defined result."""

import torch


def places(t):
    """The elements of the storage that t shows, row-major."""
    at = torch.tensor([t.storage_offset()])
    for size, stride in zip(t.shape, t.stride()):
        at = (at[:, None] + torch.arange(size) * stride).flatten()
    return at.tolist()


def same_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def meet(a, b):
    """Whether they show a common element."""
    return same_memory(a, b) and bool(set(places(a)) & set(places(b)))


def repeats(t):
    """Whether t shows an element more than once."""
    return len(set(places(t))) < t.numel()


def overlaps_otherwise(target, value):
    """Whether they show the same elements with other strides: then the result depends on the engine's first conversion."""
    if not same_memory(target, value):
        return False
    same = set(places(target)) == set(places(value))
    return same and (target.shape != value.shape or target.stride() != value.stride())


def is_dense(t):
    at = sorted(places(t))
    return at == list(range(at[0], at[0] + len(at))) if at else True


def undefined_write(written, read):
    """Whether a write with this operand has a result that depends on the order of elements, unnoticed by PyTorch."""
    if repeats(written) and all(n < 2 or stride > 0 for n, stride in zip(written.shape, written.stride())):
        return True  # what a stride of 0 repeats is refused
    for t in read:
        if t is None or not meet(written, t):
            continue
        same = t.shape == written.shape and places(t) == places(written)
        if same and t.stride() != written.stride():  # in dims of size 1 alone
            return True
        if not same and not (is_dense(t) and is_dense(written)):
            return True
    return False
