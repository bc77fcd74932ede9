"""What every deferrer refuses before any work."""

import pytest
import torch
from _instances import INSTANCES, make_crowd
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression


class Untouched(LogisticRegression):
    """Is not to be fitted."""

    def fit(self, X, y):
        raise AssertionError("work has begun")


FAULTS = {
    "hidden_layer_sizes": ((4, 0), ValueError, r"hidden_layer_sizes=\(4, 0\) must be whole numbers of units"),
    "answer_hidden_layer_sizes": ((1.5,), ValueError, r"answer_hidden_layer_sizes=\(1.5,\) must be whole numbers"),
    "class_weight": ({"nobody": 1.0}, ValueError, "are not in class_weight"),
    "device": ("cuda", RuntimeError, "no CUDA device is available"),
}
CASES = [
    pytest.param(instance.estimator, fault, id=f"{instance}-{fault}")
    for instance in INSTANCES
    if instance.kind == "deferrer"
    for fault in FAULTS
    if fault in instance.estimator.get_params()
]


@pytest.mark.parametrize(("deferrer", "fault"), CASES)
def test_settings_of_nets_are_checked_before_any_work(deferrer, fault, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    value, kind, message = FAULTS[fault]
    broken = clone(deferrer).set_params(**{fault: value}, max_epochs=10**9)
    if broken.get_params().get("classifier") is not None:
        broken.set_params(classifier=Untouched())
    crowd = make_crowd()
    with pytest.raises(kind, match=message):
        broken.fit(crowd.X, crowd.y, annotations=crowd.annotations)
