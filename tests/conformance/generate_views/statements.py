"""draw(program): emits a statement of some kind. False when nothing fits; then it is tried again."""

import common
import gradients
import reads
import views
import writes

KINDS = [
    (30, views.view), (6, views.several_views),
    (10, reads.read_unary), (8, reads.read_binary), (6, reads.read_other), (2, reads.read_indexed),
    (2, reads.read_joined), (2, reads.read_product),
    (14, writes.write_unary), (8, writes.write_number), (14, writes.write_binary), (3, writes.write_ternary),
    (4, writes.write_masked), (1, writes.write_scattered), (6, writes.write_item), (6, writes.write_indexed),
    (1, writes.write_index),
    (4, gradients.backward), (3, gradients.grad), (1, gradients.requires_grad), (2, gradients.retain_grad),
    (1, gradients.get_grad), (1, gradients.set_grad), (5, gradients.mode),
]


def draw(p):
    return common.weighted(p, KINDS)[1](p)
