"""A scorer of classifiers that learn from votes, which needs no true label."""

from sklearn.utils.metadata_routing import MetadataRequest

from .._annotated_target import matched_target
from .._last_step import last_step


def make_votes_scorer():
    """Make a scorer that judges classifiers of votes by votes, for searches without true labels.

    The score is the mean log-probability of held-out answers, as in `log_likelihood` of the classifiers of
    :mod:`sklearn_l2d.crowd`; it works at the end of a pipeline or inside a search too. With metadata routing switched
    on it receives `annotations` by itself; without, they come with an `AnnotatedTarget`.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y=None, annotations=None)``, a float.

    Raises
    ------
    ValueError
        When called, if no annotations come.

    TypeError
        When called, if the estimator does not end in a classifier that learns from votes.

    See Also
    --------
    make_team_scorer : Judges a team by true labels.

    Examples
    --------
    Without true labels, the target is missing throughout, and folds are drawn without looking at it.

    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from sklearn_l2d.annotations import AnnotatedTarget
    >>> from sklearn_l2d.crowd import AggNetClassifier
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.model_selection import make_votes_scorer
    >>> crowd = load_digits_crowd(random_state=0)
    >>> y = AnnotatedTarget(np.full(len(crowd.X_identified), np.nan), crowd.annotations)
    >>> search = GridSearchCV(
    ...     AggNetClassifier(max_epochs=10, random_state=0),
    ...     {"lr": [1e-5, 0.05]},
    ...     scoring=make_votes_scorer(),
    ...     cv=KFold(2),
    ... )
    >>> search.fit(crowd.X_identified, y).best_params_
    {'lr': 0.05}
    """
    return _VotesScorer()


class _VotesScorer:
    """What `make_votes_scorer` makes."""

    def __repr__(self):
        return "make_votes_scorer()"

    def __call__(self, estimator, X, y=None, annotations=None):
        classifier, items = last_step(estimator, X)
        if not hasattr(classifier, "log_likelihood"):
            raise TypeError(
                f"{type(classifier).__name__} has no log_likelihood; this scorer judges classifiers that learn from "
                "votes."
            )
        if y is not None:
            _, annotations = matched_target(X, y, annotations)
        if annotations is None:
            raise ValueError(
                "the scorer received no annotations. Call sklearn.set_config(enable_metadata_routing=True) so that "
                "they reach it through a search, or pass y=AnnotatedTarget(y, annotations)."
            )
        return classifier.log_likelihood(items, annotations)

    def get_metadata_routing(self):
        """Metadata that a search passes on."""
        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="annotations", alias=True)
        return request
