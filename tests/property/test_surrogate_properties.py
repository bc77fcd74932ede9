from functools import partial

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import permutations

from sklearn_l2d._torch._losses import mixture_loss, one_vs_all_loss, softmax_loss

N_CLASSES = 3
LOSSES = {"softmax": softmax_loss, "ova": one_vs_all_loss, "mixture": partial(mixture_loss, n_classes=N_CLASSES)}


def loss_of(name, logits, label, right):
    value = np.column_stack([np.eye(N_CLASSES)[label], right])
    return LOSSES[name](torch.tensor(logits), torch.tensor(value)).numpy()


@given(st.sampled_from(list(LOSSES)), permutations(N_CLASSES), st.data())
def test_order_of_classes_and_experts_does_not_matter_to_losses(name, classes, data):
    n_experts = data.draw(st.integers(0, 4))
    experts = data.draw(permutations(n_experts))
    n_outputs = N_CLASSES + n_experts + (name == "mixture")
    g = data.draw(hnp.arrays(float, (2, n_outputs), elements=st.floats(-50, 50)))
    right = data.draw(hnp.arrays(float, (2, n_experts), elements=st.sampled_from([0.0, 1.0, np.nan])))
    label = np.array([0, 2])
    order = np.concatenate([classes, N_CLASSES + experts, np.arange(N_CLASSES + n_experts, n_outputs)])
    moved = loss_of(name, g[:, order], np.argsort(classes)[label], right[:, experts])
    np.testing.assert_allclose(moved, loss_of(name, g, label, right), rtol=1e-10, atol=1e-10)
