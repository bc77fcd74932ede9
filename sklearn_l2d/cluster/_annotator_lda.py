"""Latent behaviours of annotators, learnt from anonymous vote counts."""

import numbers
from typing import ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._encoding import check_row_count, sparse_counts
from .._net_parameters import NET_CONSTRAINTS
from .._numerics._marginal_likelihood import is_whole, log_marginal
from .._sklearn import Interval, StrOptions, fit_context
from .._torch._e_steps import responsibilities
from .._torch._net import predict_batches
from ..annotations import encode_counts
from ._behaviour_training import BehaviourTrainingMixin
from ._onboarding import OnboardingMixin


class AnnotatorLDA(BehaviourTrainingMixin, OnboardingMixin, BaseEstimator):
    """Find behaviours in anonymous annotations, then say which behaviour each expert looks like.

    `fit` needs only how many people chose each class of each item, not who they were: a latent Dirichlet
    allocation whose topics are neural classifiers (L2D-Clusters, section 3.1). `transform` then places experts
    from a small set of items whose annotators are known; no ground truth is needed anywhere.

    Mind the rows: ``transform(X, annotations)`` has one row per *expert*. ``transform(X)`` alone has one row per
    sample, each equal to `cluster_weights_`, which is what is known about an expert of whom nothing is known.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of behaviours K. 1 is a single classifier of the mean label distribution.

    alpha : float or array-like of shape (n_clusters,), default=50.0
        Dirichlet concentration of the items' mixtures. Large values say that every item is annotated by the same
        mixture of behaviours.

    init : {"consensus", "random"}, default="consensus"
        "consensus" trains one net on the mean label distribution first, then holds the behaviours to sharpened and
        flattened versions of it, so that cluster 0 takes the votes that agree and the last cluster the dissent,
        the same way everywhere in `X` and for every seed. "random" is the recipe of the paper: different seeds
        then find different, locally inconsistent clusters.

    n_consensus_epochs : int, default=20
        Epochs of the consensus net (`init="consensus"`).

    n_anchor_epochs : int, default=20
        How many of the `max_epochs` are held to the consensus (`init="consensus"`).

    module : callable, default=None
        Class or function called with `n_outputs` that returns a torch module from batches of `X` to logits;
        `functools.partial` sets its other arguments. Each cluster gets its own copy, and `X` may then have any
        number of dimensions. None is a multilayer perceptron.

    hidden_layer_sizes : tuple of int, default=(128,)
        Hidden units of the default perceptron.

    optimizer : {"sgd", "adam"} or callable, default="sgd"
        Name, or a class with the signature of torch optimisers.

    lr : float, default=0.1
        Learning rate at the start of the cosine schedule.

    momentum : float, default=0.9
        Momentum of "sgd"; it plays the part of the moving average of online EM.

    weight_decay : float, default=0.015
        L2 penalty, averaged over the behaviours: K that answer alike pay as much as one.

    batch_size : int, default=128
        Items per training step.

    max_epochs : int, default=60
        Epochs of EM, including `n_anchor_epochs`.

    max_e_steps : int, default=20
        Largest number of sweeps of the E-step.

    e_tol : float, default=1e-2
        An item's E-step stops when no cluster gains or loses more than this many votes.

    membership : {"map", "variational", "average"}, default="map"
        How an expert's membership is found. "map" is the maximum a posteriori mixture weights, solved to optimality.
        "variational" is Algorithm 1 of the paper, whose softness comes from where it starts and when it stops;
        "average" is the Dirichlet of its appendix F, which stays near `cluster_weights_` when `alpha` is large.

    membership_prior : float, default=1.0
        Pseudo-counts spread over `cluster_weights_` that soften a "map" membership; 0 is maximum likelihood.

    membership_start : float, default=50.0
        Entries of the Dirichlet parameter from which "variational" starts.

    membership_iter : int, default=200
        Iterations of "variational".

    likelihood : {"auto", "exact", "sobol"}, default="auto"
        Held-out likelihood used by `score`. "auto" is decided by `fit`, from `n_clusters` and the largest number of
        votes of an item; fix it when scores of different settings are compared.

    missing_label : object, default=None
        Marker of a missing annotation. None takes NaN, None, pandas.NA and masked entries, and also -1 unless -1
        is a class.

    warm_start : bool, default=False
        Continue from the previous `fit` with `max_epochs` of EM.

    device : str, default="auto"
        "auto" takes CUDA when there is one; or "cpu", "cuda", "cuda:1", ...

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of the shuffling.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, in the order of the columns of the counts.
    cluster_weights_ : ndarray of shape (n_clusters,)
        Share of all votes that each behaviour carries, ``sum T zeta / sum T`` of the last E-step.
    alpha_ : ndarray of shape (n_clusters,)
        Concentration of each cluster.
    likelihood_ : {"exact", "sobol"}
        Likelihood used where `likelihood="auto"`.
    n_iter_ : int
        Epochs run, those of the consensus net included.
    history_ : list of dict
        Phase, loss (nats per vote) and duration (seconds) of every epoch.
    device_ : str
        Where the nets are.
    net_ : object
        The trained nets; private in everything but name.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    sklearn_l2d.metrics.consensus_agreement : The rival that needs one net only.
    sklearn_l2d.inspection.MembershipDisplay : Picture of the memberships.

    Notes
    -----
    The E-step works on counts, per distinct class of an item (L2D-Clusters Eq. 13, 16), the M-step is stochastic
    gradient descent on ``-sum T zeta ln f / sum T`` (section 3.3). Eq. 2 and 3 are solved in the mean of the
    Dirichlet, the only part of it that one annotation per item identifies (corrected).

    Anonymous counts show an axis of agreement with the consensus. They cannot show specialists of equal overall
    accuracy, since nothing in a count links an annotator across classes.

    ``FrozenEstimator(lda)`` and the search objects of scikit-learn do not pass annotations on to `transform`: call
    the estimator itself, for instance ``search.best_estimator_``.

    References
    ----------
    L2D-Clusters: Learning to defer on anonymously-annotated data, sections 3.1 and 3.2, appendices C to F.

    Examples
    --------
    >>> from sklearn_l2d.cluster import AnnotatorLDA
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> lda = AnnotatorLDA(n_clusters=2, max_epochs=10, n_anchor_epochs=5, n_consensus_epochs=5, random_state=0)
    >>> lda.fit(crowd.X_anonymous, crowd.counts)
    AnnotatorLDA(...)
    >>> membership = lda.transform(crowd.X_identified, crowd.annotations)
    >>> membership.shape  # one row per expert
    (6, 2)
    """

    _parameter_constraints: ClassVar = {
        **NET_CONSTRAINTS,
        "n_clusters": [Interval(numbers.Integral, 1, None, closed="left")],
        "alpha": [Interval(numbers.Real, 0, None, closed="neither"), "array-like"],
        "init": [StrOptions({"consensus", "random"})],
        "n_consensus_epochs": [Interval(numbers.Integral, 1, None, closed="left")],
        "n_anchor_epochs": [Interval(numbers.Integral, 0, None, closed="left")],
        "max_e_steps": [Interval(numbers.Integral, 1, None, closed="left")],
        "e_tol": [Interval(numbers.Real, 0, None, closed="left")],
        "membership": [StrOptions({"map", "variational", "average"})],
        "membership_prior": [Interval(numbers.Real, 0, None, closed="left")],
        "membership_start": [Interval(numbers.Real, 0, None, closed="neither")],
        "membership_iter": [Interval(numbers.Integral, 0, None, closed="left")],
        "likelihood": [StrOptions({"auto", "exact", "sobol"})],
        "missing_label": "no_validation",
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        n_clusters=2,
        *,
        alpha=50.0,
        init="consensus",
        n_consensus_epochs=20,
        n_anchor_epochs=20,
        module=None,
        hidden_layer_sizes=(128,),
        optimizer="sgd",
        lr=0.1,
        momentum=0.9,
        weight_decay=0.015,
        batch_size=128,
        max_epochs=60,
        max_e_steps=20,
        e_tol=1e-2,
        membership="map",
        membership_prior=1.0,
        membership_start=50.0,
        membership_iter=200,
        likelihood="auto",
        missing_label=None,
        warm_start=False,
        device="auto",
        dtype="float32",
        verbose=0,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.init = init
        self.n_consensus_epochs = n_consensus_epochs
        self.n_anchor_epochs = n_anchor_epochs
        self.module = module
        self.hidden_layer_sizes = hidden_layer_sizes
        self.optimizer = optimizer
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.max_e_steps = max_e_steps
        self.e_tol = e_tol
        self.membership = membership
        self.membership_prior = membership_prior
        self.membership_start = membership_start
        self.membership_iter = membership_iter
        self.likelihood = likelihood
        self.missing_label = missing_label
        self.warm_start = warm_start
        self.device = device
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y):
        """Learn the behaviours from anonymous annotations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items, best with columns of similar sizes (see `StandardScaler`).
        y : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape (n_samples,)
            Votes per class, real-valued weights allowed, where a zero row is an item that nobody annotated and the
            columns of a DataFrame name the classes; or one label per item, as one anonymous annotation each.

        Returns
        -------
        self : AnnotatorLDA
            The fitted estimator. A fit that fails leaves an earlier one as it was.

        Raises
        ------
        ValueError
            If `X` or `y` is not what is described above, or `alpha` or `n_clusters` does not go with them.
        TypeError
            If `module` is a module instance.
        RuntimeError
            If `device` names CUDA and there is none.
        FloatingPointError
            If the loss is not finite.
        """
        return self._fit(X, y)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None):
        """Learn from one more chunk of a stream, one epoch per call at a constant learning rate.

        With the consensus start, the consensus net learns beside the behaviours and anchors them during the first
        ``n_consensus_epochs + n_anchor_epochs`` calls.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items of the chunk.
        y : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape (n_samples,)
            As in `fit`.
        classes : array-like of shape (n_classes,), default=None
            All class labels that will ever occur; needed in the first call where `y` does not show them all.

        Returns
        -------
        self : AnnotatorLDA
            The estimator, fitted to all chunks so far.
        """
        return self._learn_chunk(X, y, classes)

    def predict_annotation_proba(self, X):
        """What an annotator of each behaviour would answer.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_clusters, n_classes)
            Probabilities in the order of `classes_`.
        """
        check_is_fitted(self)
        return np.exp(np.concatenate([log_proba for _, log_proba in self._log_proba(self._check_items(X))]))

    def item_posterior(self, X, y):
        """Posterior mixture of behaviours behind the votes for each item (rho of L2D-Clusters Eq. 16).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.
        y : array-like of shape (n_samples, n_classes) or (n_samples,)
            As in `fit`.

        Returns
        -------
        rho : ndarray of shape (n_samples, n_clusters)
            Dirichlet parameters; `alpha_` for an item without votes.
        """
        check_is_fitted(self)
        alpha = torch.as_tensor(self.alpha_)
        return np.concatenate(
            [
                responsibilities(torch.as_tensor(log_f), torch.as_tensor(votes), alpha)[1].numpy()
                for log_f, votes in self._voted_log_proba(X, y)
            ]
        )

    def score(self, X, y):
        """Log-likelihood per vote of held-out anonymous annotations, ``sum ln Pr / sum L`` in nats; higher is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.
        y : array-like of shape (n_samples, n_classes) or (n_samples,)
            As in `fit`.

        Returns
        -------
        score : float
            Scores of chunks combine with the votes as weights; it does not depend on the batching.
        """
        return self._score(X, y, self.likelihood)

    def perplexity(self, X, y, method="auto"):
        """Perplexity ``exp(-score)`` of held-out anonymous annotations (L2D-Clusters Eq. 45); lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.
        y : array-like of shape (n_samples, n_classes) or (n_samples,)
            As in `fit`.
        method : {"auto", "exact", "sobol"}, default="auto"
            "auto" is the method of `score`; perplexities by different methods are not to be compared.

        Returns
        -------
        perplexity : float
            1 for a perfect prediction, `n_classes` for the uniform distribution.
        """
        if method not in ("auto", "exact", "sobol"):
            raise ValueError(f"method={method!r} is unknown; use 'auto', 'exact' or 'sobol'.")
        return float(np.exp(-self._score(X, y, self.likelihood if method == "auto" else method)))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "net_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        return tags

    @property
    def device_(self):
        """Device of the nets."""
        return self.net_.device

    def _log_proba(self, items):
        """Yield ``(rows, log_proba (b, K, C))`` of checked items, clusters in order."""
        for rows, log_proba in predict_batches(self.net_.module_.members, items, self.net_.device):
            yield rows, log_proba.cpu().numpy()[self._order].transpose(1, 0, 2)

    def _voted_log_proba(self, X, y):
        """Yield ``(log_f (b, D, K), votes (b, D))`` of the distinct classes that each item has votes for."""
        items = self._check_items(X)
        counts, _ = encode_counts(y, classes=self.classes_)
        check_row_count(counts, len(items), "y")
        labels, votes = sparse_counts(counts)
        for rows, log_proba in self._log_proba(items):
            yield np.take_along_axis(log_proba, labels[rows][:, None], 2).transpose(0, 2, 1), votes[rows]

    def _score(self, X, y, method):
        check_is_fitted(self)
        parts = list(self._voted_log_proba(X, y))
        if method == "auto":
            # real-valued votes have no exact likelihood, whatever fit saw
            method = self.likelihood_ if all(is_whole(votes) for _, votes in parts) else "sobol"
        total = sum(log_marginal(log_f, votes, self.alpha_, method).sum() for log_f, votes in parts)
        return float(total / sum(votes.sum() for _, votes in parts))
