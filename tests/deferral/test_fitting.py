"""What every deferrer refuses before any work."""

import numpy as np
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


@pytest.mark.parametrize("deferrer", [i.estimator for i in INSTANCES if i.kind == "deferrer"], ids=str)
def test_a_class_that_only_experts_name_is_an_answer_and_wrong(deferrer):
    crowd = make_crowd()
    rows = crowd.y < 2  # the few labelled rows do not show the last class
    X, y, annotations = crowd.X[rows], crowd.y[rows], crowd.annotations[rows].copy()
    annotations[:, 0] = np.where(annotations[:, 0] == -1, -1, 2)  # who is never right
    deferrer = clone(deferrer)
    if deferrer.get_params().get("surrogate") == "realizable":
        annotations = annotations[:, :1]
    with pytest.warns(UserWarning, match=r"labels that y lacks, \[2\]"):
        deferrer.fit(X, y, annotations=annotations)
    assert deferrer.classes_.tolist() == [0, 1, 2]
    assert deferrer.predict_proba(X).shape == (len(X), 3)
    deferral, right = deferrer.predict_deferral(X), annotations == y[:, None]
    assert not right[:, 0].any()
    weight = (annotations >= 0) @ deferrer.selection_.T
    expected = np.divide(right @ deferrer.selection_.T, weight, out=np.zeros(weight.shape), where=weight > 0)
    own = deferrer.predict(X) == y
    asked = (deferral >= 0) & (weight[np.arange(len(X)), deferral] > 0)
    score = np.where(asked, expected[np.arange(len(X)), deferral], own).mean()
    assert deferrer.score(X, y, annotations=annotations) == pytest.approx(score)
