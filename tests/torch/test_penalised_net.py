import numpy as np
import pytest
import torch

from sklearn_l2d._torch._penalised_net import PenalisedNet


@pytest.mark.parametrize(("bounds", "outside"), [((0.5, 0.5), 0.25), ((0.0, 0.2), 0.05), ((0.2, 0.6), 0.0)])
def test_the_loss_is_the_cross_entropy_and_the_squared_distance_of_the_soft_coverage(bounds, outside):
    proba = np.array([[0.6, 0.3, 0.1], [0.2, 0.4, 0.4]])  # the last output has a mean of 0.25
    targets = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    net = PenalisedNet.__new__(PenalisedNet)
    net.penalty, net.coverage_bounds = 7.0, bounds
    loss = net.batch_loss(torch.tensor(np.log(proba)), [torch.tensor(targets)], None)
    entropy = -(np.log(0.6) + 0.5 * np.log(0.4) + 0.5 * np.log(0.4)) / 2
    assert loss.item() == pytest.approx(entropy + 7 * outside**2)
