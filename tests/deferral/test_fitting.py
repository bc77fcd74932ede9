"""What every deferrer refuses before any work."""

import numpy as np
import pytest
import torch
from _instances import INSTANCES, make_crowd, of_kind, without_people
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.deferral import BestExpert, ConfidenceDeferral, ExpertAgnosticDeferral, LECODUDeferral


class Untouched(LogisticRegression):
    """Is not to be fitted."""

    def fit(self, X, y):
        raise AssertionError("work has begun")


FAULTS = [
    ("hidden_layer_sizes", (4, 0), ValueError, r"hidden_layer_sizes=\(4, 0\) must be whole numbers of units"),
    ("answer_hidden_layer_sizes", (1.5,), ValueError, r"answer_hidden_layer_sizes=\(1.5,\) must be whole numbers"),
    ("class_weight", {"nobody": 1.0}, ValueError, "are not in class_weight"),
    ("class_weight", {0: 0, 1: 0, 2: 0}, ValueError, "class_weight=.* is negative for a class in y, or zero for all"),
    ("class_weight", {0: -1, 1: 2, 2: 2}, ValueError, "class_weight=.* is negative for a class in y, or zero for all"),
    ("consultation_cost", ["dear", "cheap", 0], ValueError, "consultation_cost=.* must hold numbers"),
    ("consultation_cost", {0: "dear"}, ValueError, r"consultation_cost\[0\]='dear' must hold numbers"),
    ("workload", [(0, 1), (0,), (0, 1)], ValueError, "workload=.* must hold numbers, in rows of one length"),
    ("coverage", ["half", "all"], ValueError, "coverage=.* must hold numbers"),
    ("device", "cuda", RuntimeError, "no CUDA device is available"),
]
CASES = [
    pytest.param(instance.estimator, *fault, id=f"{instance}-{fault[0]}-{fault[1]}")
    for instance in INSTANCES
    if instance.kind == "deferrer"
    for fault in FAULTS
    if fault[0] in instance.estimator.get_params()
    and (fault[0] != "consultation_cost" or not isinstance(instance.estimator, LECODUDeferral))  # it has one for all
]


@pytest.mark.parametrize(("deferrer", "name", "value", "kind", "message"), CASES)
def test_settings_are_checked_before_any_work(deferrer, name, value, kind, message, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    broken = clone(deferrer).set_params(**{name: value})
    if "max_epochs" in broken.get_params():
        broken.set_params(max_epochs=10**9)
    if broken.get_params().get("classifier") is not None:
        broken.set_params(classifier=Untouched())
    if name == "consultation_cost" and "answers" in broken.get_params():
        broken.set_params(answers=None)  # a price and a budget exclude one another
    crowd = make_crowd()
    with pytest.raises(kind, match=message):
        broken.fit(crowd.X, crowd.y, annotations=crowd.annotations)


@pytest.mark.parametrize("deferrer", [i.estimator for i in INSTANCES if i.kind == "deferrer"], ids=str)
def test_unlabelled_items_are_called_so(deferrer):
    crowd = make_crowd()
    broken = clone(deferrer)
    if "max_epochs" in broken.get_params():
        broken.set_params(max_epochs=10**9)
    faults = [(crowd.X[:, :-1], "features")]
    if "module" in broken.get_params(deep=False):  # elsewhere the classifier may take them
        faults.append((np.full((3, crowd.X.shape[1]), np.nan), "NaN"))
    for wrong, message in faults:
        with pytest.raises(ValueError, match=f"X_unlabeled cannot be used: .*{message}"):
            broken.fit(crowd.X, crowd.y, annotations=crowd.annotations, X_unlabeled=wrong)


@pytest.mark.parametrize(
    "deferrer", [BestExpert(), ConfidenceDeferral(coverage=None), ExpertAgnosticDeferral()], ids=str
)
def test_nobody_who_never_answered_is_preferred_to_who_did(deferrer):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), np.arange(120) % 2
    answers = np.where(rng.random(120) < 0.9, y, 1 - y)
    annotations = np.column_stack([np.full(120, -1), answers, np.full(120, -1)])
    deferrer.set_params(classifier=LogisticRegression(), random_state=0)
    if "max_epochs" in deferrer.get_params():
        deferrer.set_params(max_epochs=3)
    with pytest.warns(UserWarning, match=r"\[0, 2\]"):
        deferrer.fit(X, y, annotations=annotations)
    asked = deferrer.predict_deferral(X)
    assert (asked == 1).mean() > 0.5  # the classifier knows nothing
    assert set(asked) <= {-1, 1}


@pytest.mark.parametrize("with_experts", [False, True])
def test_score_refuses_what_numpy_would_broadcast(with_experts):
    crowd = make_crowd()
    annotations = crowd.annotations if with_experts else None
    model = ConfidenceDeferral(LogisticRegression(), random_state=0).fit(crowd.X, crowd.y, annotations=annotations)
    right = model.score(crowd.X, crowd.y, annotations)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(crowd.X, crowd.y[:1], annotations)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(crowd.X, crowd.y, annotations, sample_weight=[1.0])
    with pytest.raises(ValueError, match=r"(?i)negative"):
        model.score(crowd.X, crowd.y, annotations, sample_weight=-np.ones(len(crowd.y)))
    assert model.score(crowd.X, crowd.y[:, None], annotations) == right


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
    if hasattr(deferrer, "replay") or hasattr(deferrer, "join_answers"):
        return  # it does not take anybody's answer as it is
    deferral, right = deferrer.predict_deferral(X), annotations == y[:, None]
    assert not right[:, 0].any()
    weight = (annotations >= 0) @ deferrer.selection_.T
    expected = np.divide(right @ deferrer.selection_.T, weight, out=np.zeros(weight.shape), where=weight > 0)
    own = deferrer.predict(X) == y
    asked = (deferral >= 0) & (weight[np.arange(len(X)), deferral] > 0)
    score = np.where(asked, expected[np.arange(len(X)), deferral], own).mean()
    assert deferrer.score(X, y, annotations=annotations) == pytest.approx(score)


@pytest.mark.parametrize(
    "instance", [i for i in of_kind("deferrer") if "workload" in i.estimator.get_params()], ids=str
)
def test_bounds_that_are_taken_back_are_gone(instance):
    crowd = make_crowd()
    bounded = clone(instance.estimator).set_params(workload={0: (0, 0)})
    bounded.fit(crowd.X, crowd.y, annotations=crowd.annotations)
    assert bounded.workload_[0] == 0
    free = bounded.set_params(workload=None)
    path = free.coverage_path if hasattr(free, "coverage_path") else free.answers_path
    (on_path,) = path([0.5], X_unlabeled=crowd.X)
    free.recalibrate(crowd.X)
    fresh = clone(instance.estimator).fit(crowd.X, crowd.y, annotations=crowd.annotations)
    for team in (free, on_path):
        np.testing.assert_allclose(team.selection_, fresh.selection_)
    np.testing.assert_allclose(getattr(free, "prices_", 0.0), getattr(fresh, "prices_", 0.0))


REQUESTS = {
    "coverage": [0.5, (0.2, 0.6)],
    "workload": [(0, 0.5)],
    "cluster_workload": [(0, 0.5)],
    "answers": [0.5],
    "n_agents": [2],
    "target_accuracy": [0.9],
    "labels": ["crowdlab"],
}


@pytest.mark.parametrize("instance", of_kind("deferrer"), ids=str)
def test_requests_for_people_without_annotations_are_refused(instance):
    crowd = make_crowd()
    for name in REQUESTS.keys() & instance.estimator.get_params(deep=False).keys():
        for value in REQUESTS[name]:
            forgetful = without_people(instance.estimator).set_params(**{name: value})
            if hasattr(forgetful, "next_expert"):
                forgetful.set_params(consultation_cost=None)  # a price and a budget exclude one another
            if isinstance(forgetful.get_params().get("classifier"), LogisticRegression):
                forgetful.set_params(classifier=Untouched())
            with pytest.raises(ValueError, match=rf"^{name}=.*, but there are no annotations; .*out {name}\.$"):
                forgetful.fit(crowd.X, crowd.y)
            assert not hasattr(forgetful, "n_features_in_")
    alone = without_people(instance.estimator).fit(crowd.X, crowd.y)
    assert (alone.predict_deferral(crowd.X) == -1).all()
    if "coverage" in alone.get_params():
        alone.set_params(coverage=(0.5, 1.0)).fit(crowd.X, crowd.y)  # which the classifier meets alone
