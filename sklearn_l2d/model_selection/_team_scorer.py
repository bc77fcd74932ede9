"""Scorers that judge a team instead of its classifier."""

from sklearn.metrics import accuracy_score
from sklearn.utils.metadata_routing import MetadataRequest

from .._last_step import last_step, split_steps
from .._validation import of_known_truth

_DECISIONS = ("draw", "vote", "combine", "crowdlab", "expected")


def make_team_scorer(metric=None, *, decision="draw", greater_is_better=True, **metric_params):
    """Make a scorer that judges the labels of a team, for searches and cross-validation.

    Metrics of scikit-learn see what `predict` returns, which is the classifier alone. This scorer asks the team, at
    the end of a pipeline or inside a search too. With metadata routing switched on it receives `annotations` by
    itself; without, they come with an `AnnotatedTarget`.

    Parameters
    ----------
    metric : callable, default=None
        Called as ``metric(y_true, y_team, **metric_params)``; None is the accuracy. A scorer can be pickled if its
        metric can.

    decision : {"draw", "vote", "combine", "crowdlab", "expected"}, default="draw"
        How the team decides: by the answer of the member who was drawn, by the vote of the target's members, or, in two
        ways, by the classifier and all answers together, as in `predict_team`; or in expectation over the draw, as in
        `score`, which is the accuracy and takes no metric.

    greater_is_better : bool, default=True
        False for a loss, whose sign the scorer changes.

    **metric_params : dict
        Further arguments of `metric`.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y, annotations=None, sample_weight=None)``, a float. Where a search shall pass
        `sample_weight`, ask for it with ``scorer.set_score_request(sample_weight=True)``.

    Raises
    ------
    ValueError
        If `decision` is unknown, or "expected" meets a metric; when called, if experts were fitted and no annotations
        come.

    TypeError
        When called, if the estimator does not end in a deferrer.

    See Also
    --------
    sklearn_l2d.deferral.ClusterDeferral : Has a `score` of its own, the expected accuracy.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.metrics import f1_score
    >>> from sklearn.model_selection import cross_validate
    >>> from sklearn_l2d.annotations import AnnotatedTarget
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import ClusterDeferral
    >>> from sklearn_l2d.model_selection import make_team_scorer
    >>> crowd = load_digits_crowd()
    >>> team = ClusterDeferral(
    ...     n_groups=2, classifier=LogisticRegression(), max_epochs=20, random_state=0
    ... )
    >>> scoring = {
    ...     "classifier": "accuracy",
    ...     "team": make_team_scorer(decision="expected"),
    ...     "team_f1": make_team_scorer(f1_score, average="macro"),
    ... }
    >>> y = AnnotatedTarget(crowd.y_identified, crowd.annotations)
    >>> scores = cross_validate(team, crowd.X_identified, y, scoring=scoring, cv=2)
    >>> sorted(name for name in scores if name.startswith("test"))
    ['test_classifier', 'test_team', 'test_team_f1']
    """
    if decision not in _DECISIONS:
        raise ValueError(f"decision={decision!r} is unknown; use one of {_DECISIONS}.")
    if decision == "expected" and (metric is not None or metric_params or not greater_is_better):
        raise ValueError("decision='expected' is the expected accuracy; leave metric out, or use another decision.")
    return _TeamScorer(metric or accuracy_score, decision, 1 if greater_is_better else -1, metric_params)


class _TeamScorer:
    """What `make_team_scorer` makes."""

    def __init__(self, metric, decision, sign, metric_params):
        self.metric, self.decision, self.sign, self.metric_params = metric, decision, sign, metric_params
        self._weight_request = None

    def __repr__(self):
        name = getattr(self.metric, "__name__", repr(self.metric))
        return f"make_team_scorer({name}, decision={self.decision!r})"

    def __call__(self, estimator, X, y, annotations=None, sample_weight=None):
        _, deferrer = split_steps(estimator)
        if not hasattr(deferrer, "predict_team"):
            raise TypeError(f"{type(deferrer).__name__} has no predict_team; team scorers judge deferrers.")
        # the items of a pipeline may have lost their ids: what belongs together is told by X
        marker = getattr(deferrer, "unlabeled_label", None)
        X, y, annotations, sample_weight = of_known_truth(X, y, annotations, sample_weight, marker)
        _, items = last_step(estimator, X)
        if self.decision == "expected":
            return deferrer.score(items, y, annotations=annotations, sample_weight=sample_weight)
        labels = deferrer.predict_team(items, annotations, decision=self.decision)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.sign * self.metric(y, labels, **weights, **self.metric_params)

    def set_score_request(self, *, sample_weight):
        """Say whether a search shall pass `sample_weight`, in the terms of scikit-learn's metadata routing."""
        self._weight_request = sample_weight
        return self

    def get_metadata_routing(self):
        """Metadata that a search passes on."""
        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="annotations", alias=True)
        request.score.add_request(param="sample_weight", alias=self._weight_request)
        return request
