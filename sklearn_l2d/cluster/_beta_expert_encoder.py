"""Encodings of experts by their competence per class, from counts of right answers."""

from typing import ClassVar

import numpy as np
from sklearn.utils import check_array

from .._numerics._answers import competence_posterior, prior_strengths, tally_votes
from ._expert_encoder import ExpertEncoder


class BetaExpertEncoder(ExpertEncoder):
    """Encode every expert by the posterior of a Beta-Binomial model of right answers per class.

    This is the hand-crafted encoding of EA-L2D, a baseline of L2D-Clusters section 5.1. It counts how often an expert
    is right on the items of each true class. The features of the items are checked, but not used.

    Note the rows: ``transform(X, annotations, y)`` has one row per *expert*. ``transform(X)`` has one row per sample,
    each equal to the encoding of an unknown expert, the prior.

    Parameters
    ----------
    prior : tuple of two floats, default=None
        Pseudo-counts of right and wrong answers, the same for every expert and class; (1, 1) is the flat prior. None is
        empirical Bayes: the competence in a class is shrunk towards the expert's own correctness, and that towards the
        correctness of all experts, by as much as the annotations in `fit` suggest. Without annotations in `fit`, None
        is the flat prior.

    with_variance : bool, default=False
        Whether the encoding has the posterior variances after the posterior means, as in L2D-Clusters section 5.1.

    classes : array-like of shape (n_classes,), default=None
        Sorted labels of all classes. None takes the labels of `y` and `annotations` in `fit`.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    experts_ : ndarray of shape (n_experts,), dtype=object
        Names of the experts in `fit`.
    center_ : float
        Competence of an unknown expert.
    strengths_ : tuple of two floats
        Numbers of answers that the priors count as: `center_` in the correctness of an expert (infinite with a given
        `prior`), and this correctness in the competence in a class.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    AnnotatorLDA : Memberships that need no true labels and use the features of the items.
    FuzzyCMeans : Clusters the encodings.

    References
    ----------
    EA-L2D: Strong et al., Expert-agnostic learning to defer, 2025.

    L2D-Clusters: Learning to defer on anonymously-annotated data, section 5.1.

    Examples
    --------
    >>> from sklearn_l2d.cluster import BetaExpertEncoder
    >>> X, y = [[0], [1], [2], [3]], [0, 0, 1, 1]
    >>> annotations = [[0, 1], [0, 1], [1, 1], [0, -1]]
    >>> BetaExpertEncoder(prior=(1, 1)).fit_transform(X, y, annotations)
    array([[0.75      , 0.5       ],
           [0.25      , 0.66666667]])
    """

    _parameter_constraints: ClassVar = {
        "prior": ["array-like", None],
        "with_variance": ["boolean"],
        "classes": ["array-like", None],
        "missing_label": "no_validation",
    }

    def __init__(self, *, prior=None, with_variance=False, classes=None, missing_label=None):
        self.prior = prior
        self.with_variance = with_variance
        self.classes = classes
        self.missing_label = missing_label

    def _learn(self, items, y_codes, votes):
        prior = self.prior
        if prior is None and len(votes.item):
            self.center_, self.strengths_ = prior_strengths(*self._tally(y_codes, votes))
            return
        right, wrong = check_prior((1.0, 1.0) if prior is None else prior)
        self.center_, self.strengths_ = right / (right + wrong), (np.inf, right + wrong)

    def _encode(self, items, y_codes, votes):
        return self._moments(*self._tally(y_codes, votes))

    def _nobody(self):
        return self._moments(*np.zeros((2, 1, len(self.classes_))))[0]

    def _tally(self, y_codes, votes):
        return tally_votes(votes, np.eye(len(self.classes_))[y_codes])

    def _moments(self, right, seen):
        mean, variance = competence_posterior(right, seen, self.center_, self.strengths_)
        return np.hstack([mean, variance]) if self.with_variance else mean


def check_prior(prior):
    """Pseudo-counts of right and wrong answers, as two floats."""
    values = check_array(prior, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name="prior")
    if values.shape != (2,) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"prior={prior!r} must be two positive pseudo-counts, of right and of wrong answers.")
    return float(values[0]), float(values[1])
