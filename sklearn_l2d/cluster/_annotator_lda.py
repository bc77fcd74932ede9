"""Latent behaviours of annotators, learnt from anonymous vote counts, and memberships of experts.

Beside the estimator, `_learnt_settings.py` has what the votes decide before and during training, `_survey.py` what the
behaviours are after it, and `_membership.py` how experts are placed among them.
"""

import copy
import numbers
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._annotated_target import matched_target
from .._encoding import check_row_count, sparse_counts
from .._numerics._concentration import gamma_prior, weight_prior, whole_rows
from .._numerics._item_information import most_informative
from .._numerics._marginal_likelihood import check_alpha, is_whole, likelihood_method, log_marginal
from .._numerics._mixture_weights import weight_deviations, weight_posterior
from .._persistence import Estimator
from .._rows import same_rows
from .._sklearn import Interval, StrOptions, atomic_fit, transform_output, warn
from .._torch._e_steps import responsibilities
from .._torch._net import NET_CONSTRAINTS, check_net, predict_batches, train
from .._torch._seeding import own_state
from .._validation import answers_among, votes_beside, weighted_rows
from ..annotations import encode_counts
from ._annotation_net import build_annotation_net, drop_consensus
from ._learnt_settings import USUAL_PENALTY, AlphaLearner, best_penalty, start_of_needed
from ._membership import observed_log_proba, pseudo_counts, solve_membership
from ._survey import distances, survey, used, warn_of_collapse

_ALPHA_EPOCHS = 5  # of EM until alpha is learnt anew


class TrainingData(NamedTuple):
    """Checked rows of a fit: items, their groups, distinct classes of their votes, their numbers, and all classes."""

    X: np.ndarray
    groups: np.ndarray | None
    labels: np.ndarray
    votes: np.ndarray
    classes: np.ndarray


def one_column(annotations):
    """Annotations of one expert as a table of one column, from shape (n,) or (n, 1)."""
    if hasattr(annotations, "iloc"):  # pandas, which is not imported here
        table = annotations if hasattr(annotations, "columns") else annotations.to_frame()
    elif hasattr(annotations, "shape"):
        table = annotations[:, None] if len(annotations.shape) == 1 else annotations
    else:
        table = np.array(annotations, dtype=object)
        table = table[:, None] if table.ndim == 1 else table
    if len(table.shape) != 2 or table.shape[1] != 1:
        raise ValueError(
            f"annotations has shape {tuple(table.shape)}, but items are suggested to one expert at a time; pass one "
            "column."
        )
    return table


def check_n_items(n_items, n_pool):
    """Refuse a number of items that is invalid or larger than the pool."""
    if not isinstance(n_items, numbers.Integral) or isinstance(n_items, bool):
        raise TypeError(f"n_items={n_items!r} is no integer; pass the number of items to suggest.")
    if not 1 <= n_items <= n_pool:
        raise ValueError(f"n_items={n_items} is not between 1 and the {n_pool} rows of X_pool; change it.")


class AnnotatorLDA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Find behaviours in anonymous annotations, and memberships of experts in them.

    `fit` needs the number of votes for each class of each item, not the names of the annotators: the model is a latent
    Dirichlet allocation whose topics are neural classifiers (L2D-Clusters, section 3.1). `transform` then finds the
    memberships of experts by a small set of items whose annotators are known. True labels are not needed.

    Note the rows: ``transform(X, annotations)`` has one row per *expert*. ``transform(X)`` has one row per sample, each
    equal to `cluster_weights_`, the membership of an unknown expert.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters K, one for each behaviour. 1 is a single classifier of the mean label distribution.

    alpha : float or array-like of shape (n_clusters,), default=50.0
        Dirichlet concentration of the items' mixtures. With large values, every item is annotated by the same mixture
        of behaviours. With `learn_alpha`, the mean of its prior.

    learn_alpha : bool, default=False
        Whether `fit` learns the concentration of each cluster, by the exact likelihood of the votes and a Gamma prior
        of shape 1. Where the votes of an item come from all people, one cluster then gets most votes and nearly all
        people: keep `alpha` fixed to tell people apart.

    weight_concentration_prior_type : {None, "dirichlet_process", "dirichlet_distribution"}, default=None
        Whether `fit` learns how many clusters the votes need. None keeps `n_clusters`. Else they are the most that
        there can be: `fit` learns the concentration of each as with `learn_alpha`, with truncated stick-breaking or a
        Dirichlet distribution as the prior of its shares, and drops clusters that the votes do not need.

    weight_concentration_prior : float, default=None
        Concentration of that prior. A cluster stays if the votes are ``1 / weight_concentration_prior`` times as likely
        with it; with values near zero, one is left. None is ``1 / n_clusters``.

    init : {"consensus", "random"}, default="consensus"
        "consensus" trains one net on the mean label distribution first and then holds the behaviours to sharpened and
        flattened versions of it. Cluster 0 then takes the votes that agree with the consensus and the last cluster the
        dissent, in the same way everywhere in `X` and for every seed. "random" is the initialisation of the paper, for
        which different seeds find different, locally inconsistent clusters.

    n_consensus_epochs : int, default=20
        Number of epochs of the consensus net, for ``init="consensus"``.

    n_anchor_epochs : int, default=20
        Number of the first epochs of `max_epochs` in which the behaviours are held to the consensus, for
        ``init="consensus"``.

    module : callable, default=None
        Class or function called with `n_outputs` that returns a torch module from batches of `X` to logits;
        `functools.partial` sets its other arguments. `X` may then have any number of dimensions. None is a multilayer
        perceptron. Each cluster has its own copy.

    hidden_layer_sizes : tuple of int, default=(128,)
        Hidden units of the perceptron.

    optimizer : {"sgd", "adam"} or callable, default="sgd"
        Name, or a class with the signature of torch's optimisers.

    lr : float, default=0.1
        Learning rate at the start of the cosine schedule.

    momentum : float, default=0.9
        Momentum of "sgd". It takes the place of the moving average of online EM.

    weight_decay : float or "auto", default="auto"
        L2 penalty, averaged over the behaviours: K behaviours that answer alike have the penalty of one. With "auto",
        `fit` takes the one from .003 to .02 with which a consensus net that has seen the votes of nine tenths of the
        items, or groups, predicts those of the others best, and `partial_fit` takes .015.

    batch_size : int, default=128
        Items per training step.

    max_epochs : int, default=60
        Number of epochs of EM, including `n_anchor_epochs`.

    max_e_steps : int, default=20
        Largest number of sweeps of the E-step.

    e_tol : float, default=1e-2
        An item's E-step stops when no cluster gains or loses more than this many votes.

    membership : {"map", "variational", "average"}, default="map"
        How the membership of an expert is found. "map" is the maximum a posteriori mixture weights, solved to
        optimality. "variational" is Algorithm 1 of the paper, whose softness depends on where it starts and when it
        stops. "average" is the Dirichlet of its appendix F, which stays near `cluster_weights_` when `alpha` is large.

    membership_prior : float or "auto", default="auto"
        Pseudo-labels of a "map" membership, in proportion to `cluster_weights_`. "auto" are a tenth as many as the
        expert has labels, which softens all memberships alike, so that experts with few labels keep their place among
        the others. A number is the same for every expert, and draws those with few labels to the average; 0 is maximum
        likelihood.

    membership_start : float, default=50.0
        Entries of the Dirichlet parameter at the start of "variational".

    membership_iter : int, default=200
        Number of iterations of "variational".

    likelihood : {"auto", "exact", "sobol"}, default="auto"
        Held-out likelihood of `score`. With "auto", `fit` chooses it by `n_clusters` and the largest number of votes of
        an item; set it when scores of different settings are compared.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    warm_start : bool, default=False
        Whether `fit` continues the training of the previous nets, with `max_epochs` of EM.

    device : str, default="auto"
        Device of the training: "auto", "cpu", "cuda", "cuda:1", and so on. "auto" is CUDA if there is a CUDA device,
        else the CPU.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights and the shuffling.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    cluster_weights_ : ndarray of shape (n_clusters,)
        Share of all votes that each behaviour accounts for, ``sum T zeta / sum T`` of the last E-step.
    alpha_ : ndarray of shape (n_clusters,)
        Concentration of each cluster.
    weight_decay_ : float
        The penalty.
    likelihood_ : {"exact", "sobol"}
        Likelihood that is used with ``likelihood="auto"``.
    n_iter_ : int
        Number of epochs of the nets, including `n_consensus_epochs`.
    history_ : list of dict
        Phase, loss (nats per vote) and duration (seconds) of every epoch.
    device_ : str
        Device of the nets.
    net_ : object
        The trained nets; their interface is private.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    sklearn_l2d.metrics.consensus_agreement : An alternative with one net only.
    sklearn_l2d.inspection.MembershipDisplay : Plots the memberships.

    Notes
    -----
    The E-step uses counts per distinct class of an item (L2D-Clusters Eq. 13, 16); the M-step is stochastic gradient
    descent on ``-sum T zeta ln f / sum T`` (section 3.3). Eq. 2 and 3 are solved for the mean of the Dirichlet, the
    only part of it that one annotation per item identifies (corrected).

    Anonymous counts show how much annotators agree with the consensus. They do not show specialists of equal overall
    accuracy, since a count does not link the annotations of an annotator across classes. Nor do they show how many
    kinds of people there are, where the votes of every item come from all of them: what
    `weight_concentration_prior_type` leaves is the number that predicts the votes, which may be smaller.

    ``FrozenEstimator(lda)`` and the search objects of scikit-learn do not pass annotations to `transform`: call the
    estimator itself, for instance ``search.best_estimator_``.

    References
    ----------
    L2D-Clusters: Learning to defer on anonymously-annotated data, sections 3.1 and 3.2, appendices C to F.

    Examples
    --------
    >>> from sklearn_l2d.cluster import AnnotatorLDA
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> lda = AnnotatorLDA(
    ...     n_clusters=2, max_epochs=10, n_anchor_epochs=5, n_consensus_epochs=5, random_state=0
    ... )
    >>> lda.fit(crowd.X_anonymous, crowd.counts)
    AnnotatorLDA(...)
    >>> membership = lda.transform(crowd.X_identified, crowd.annotations)
    >>> membership.shape  # one row per expert
    (6, 2)
    """

    _parameter_constraints: ClassVar = {
        **NET_CONSTRAINTS,
        "weight_decay": [Interval(numbers.Real, 0, None, closed="left"), StrOptions({"auto"})],
        "n_clusters": [Interval(numbers.Integral, 1, None, closed="left")],
        "alpha": [Interval(numbers.Real, 0, None, closed="neither"), "array-like"],
        "learn_alpha": ["boolean"],
        "weight_concentration_prior_type": [StrOptions({"dirichlet_process", "dirichlet_distribution"}), None],
        "weight_concentration_prior": [Interval(numbers.Real, 0, None, closed="neither"), None],
        "init": [StrOptions({"consensus", "random"})],
        "n_consensus_epochs": [Interval(numbers.Integral, 1, None, closed="left")],
        "n_anchor_epochs": [Interval(numbers.Integral, 0, None, closed="left")],
        "max_e_steps": [Interval(numbers.Integral, 1, None, closed="left")],
        "e_tol": [Interval(numbers.Real, 0, None, closed="left")],
        "membership": [StrOptions({"map", "variational", "average"})],
        "membership_prior": [Interval(numbers.Real, 0, None, closed="left"), StrOptions({"auto"})],
        "membership_start": [Interval(numbers.Real, 0, None, closed="neither")],
        "membership_iter": [Interval(numbers.Integral, 0, None, closed="left")],
        "likelihood": [StrOptions({"auto", "exact", "sobol"})],
        "missing_label": "no_validation",
        "warm_start": ["boolean"],
    }

    __metadata_request__fit: ClassVar = {"groups": True}
    __metadata_request__transform: ClassVar = {"annotations": True}

    def __init__(
        self,
        n_clusters=2,
        *,
        alpha=50.0,
        learn_alpha=False,
        weight_concentration_prior_type=None,
        weight_concentration_prior=None,
        init="consensus",
        n_consensus_epochs=20,
        n_anchor_epochs=20,
        module=None,
        hidden_layer_sizes=(128,),
        optimizer="sgd",
        lr=0.1,
        momentum=0.9,
        weight_decay="auto",
        batch_size=128,
        max_epochs=60,
        max_e_steps=20,
        e_tol=1e-2,
        membership="map",
        membership_prior="auto",
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
        self.learn_alpha = learn_alpha
        self.weight_concentration_prior_type = weight_concentration_prior_type
        self.weight_concentration_prior = weight_concentration_prior
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

    @atomic_fit(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None, groups=None):
        """Learn the behaviours from anonymous annotations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items, best with columns of similar sizes (see `StandardScaler`).
        y : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape (n_samples,)
            Votes per class, which may be real-valued weights. The columns of a DataFrame name the classes, and a row of
            zeros is an item without annotations. Or one label per item, as one anonymous annotation each. Rows of
            pandas objects are matched by their index.
        sample_weight : array-like of shape (n_samples,), default=None
            What the votes on each item count: the counts of an item are multiplied by its weight. Items of weight 0 are
            left out.
        groups : array-like of shape (n_samples,), default=None
            What several items come from, such as the patient, where they resemble one another; these are groups of
            items, not of experts. What is held out to judge what was learnt is held out by whole groups, so that it is
            judged on patients whom it does not know, as future ones. By default every item is drawn by itself.

        Returns
        -------
        self : AnnotatorLDA
            The fitted estimator. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If `X`, `y` or `groups` is not as described, `alpha` or `n_clusters` does not match them, or `learn_alpha`
            is True and no item has whole votes that are few enough for the exact likelihood.
        TypeError
            If `module` is a module instance.
        RuntimeError
            If `device` is CUDA and there is no CUDA device.
        FloatingPointError
            If the loss is not finite.
        """
        warm = self.warm_start and self.__sklearn_is_fitted__()
        data = self._check_training_data(X, y, sample_weight, groups, self.classes_ if warm else None, fresh=not warm)
        learner = self._alpha_learner(data)
        net, seed, calls = self._continued_net() if warm else self._new_net(data, best_penalty)
        history, n_anchor_epochs = list(self.history_) if warm else [], 0
        settings = {"seed": seed + calls, "verbose": self.verbose}
        rows = net.rows(data.X, data.labels, data.votes)
        if net.module_.consensus is not None:
            net.module_.phase = "consensus"
            history += train(net, rows, self.n_consensus_epochs, label="consensus", keep=False, **settings)
            net.module_.members.copy_members_from(net.module_.consensus)
            net.initialize_optimizer()
            n_anchor_epochs = self.n_anchor_epochs
            if learner and learner.least is not None and n_anchor_epochs:
                n_trial = -(-n_anchor_epochs // 2)
                net, trial = start_of_needed(self.get_params(deep=False), net, data, learner, n_trial, settings)
                history += trial
                n_anchor_epochs = 0 if net.module_.consensus is None else n_anchor_epochs

        def start_epoch(epoch):
            net.module_.phase = "anchor" if epoch < n_anchor_epochs else "em"
            if learner and net.module_.phase == "em" and (epoch - n_anchor_epochs) % _ALPHA_EPOCHS == 0:
                learner.update(net)
            return net.module_.phase

        history += train(net, rows, self.max_epochs, on_epoch=start_epoch, **settings)
        drop_consensus(net)
        if learner:
            learner.update(net)
        self._finish(data, net, history, seed, calls + 1)

    @atomic_fit(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None):
        """Learn from one more chunk of a stream: one epoch per call, at a constant learning rate.

        With ``init="consensus"``, the consensus net is trained together with the behaviours and anchors them during the
        first ``n_consensus_epochs + n_anchor_epochs`` calls.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items, best with columns of similar sizes (see `StandardScaler`).
        y : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape (n_samples,)
            As in `fit`.
        classes : array-like of shape (n_classes,), default=None
            All classes, for the first call if `y` does not have them all.

        Returns
        -------
        self : AnnotatorLDA
            The estimator, fitted to all chunks so far.
        """
        for name, off in (("learn_alpha", False), ("weight_concentration_prior_type", None)):
            if getattr(self, name):
                raise ValueError(
                    f"{name}={getattr(self, name)!r} needs all votes at once: call fit, or set it to {off}."
                )
        started = self.__sklearn_is_fitted__()
        if started and classes is not None and not np.array_equal(np.asarray(classes), self.classes_):
            raise ValueError(
                f"classes={list(classes)!r} is not the same as in the first call, {self.classes_.tolist()!r}; leave "
                "it out after the first call."
            )
        data = self._check_training_data(X, y, None, None, self.classes_ if started else classes, fresh=not started)
        net, seed, calls = self._continued_net() if started else self._new_net(data, lambda *args: USUAL_PENALTY)
        if net.module_.consensus is not None:
            if calls >= self.n_consensus_epochs + self.n_anchor_epochs:
                drop_consensus(net)
            else:
                net.module_.phase = "stream"
        history = list(self.history_) if started else []
        rows = net.rows(data.X, data.labels, data.votes)
        history += train(net, rows, 1, seed=seed + calls, cosine=False, verbose=self.verbose, label=net.module_.phase)
        self._finish(data, net, history, seed, calls + 1)

    def transform(self, X, annotations=None, return_std=False):
        """Find the memberships of experts by items whose annotators are known (L2D-Clusters Eq. 2 and 3, corrected).

        Without `annotations`, the result has one row per *sample*, each equal to `cluster_weights_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts, one column per expert, with missing entries.
        return_std : bool, default=False
            Whether to also return the standard deviations of the memberships.

        Returns
        -------
        membership : ndarray or DataFrame of shape (n_experts, n_clusters)
            Memberships of the experts; rows sum to 1. With pandas output, the index is the names of the experts.
        std : ndarray of shape (n_experts, n_clusters)
            Posterior standard deviations under a flat Dirichlet prior beside `membership_prior`, by Laplace's
            approximation. Only returned if `return_std` is True.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If the annotations are not labels of the kind of `classes_`, or the number of rows is not that of `X`.

        Warns
        -----
        UserWarning
            If an expert has no annotation, whose membership is then `cluster_weights_`, and of annotations that are not
            in `classes_`, which are left out.
        """
        check_is_fitted(self)
        items = self._check_items(X)
        if annotations is None:
            nobody = np.empty((0, len(self.cluster_weights_))), np.empty(0, dtype=int)
            membership = np.tile(self.cluster_weights_, (len(items), 1))
            prior = self._prior(np.zeros(len(items)))
            return (membership, weight_deviations(*nobody, len(items), prior)) if return_std else membership
        votes = votes_beside(X, annotations, self.classes_, self.missing_label, extend=True)
        votes = answers_among(votes, self.classes_, unknown="left out")
        experts, expert = votes.annotators, votes.annotator
        n_labels = np.bincount(expert, minlength=len(experts))
        prior = self._prior(n_labels)
        log_f = observed_log_proba(self._log_proba(items), votes)
        membership = solve_membership(
            self.membership,
            log_f,
            expert,
            len(experts),
            prior=prior,
            alpha=self.alpha_,
            start=self.membership_start,
            n_iter=self.membership_iter,
        )
        silent = n_labels == 0
        if silent.any():
            warn(
                f"no annotations of the experts {list(experts[silent])}: their membership is cluster_weights_. Give "
                "them some items to label, or leave their columns out."
            )
            membership[silent] = self.cluster_weights_
        if transform_output(self) == "pandas":
            import pandas as pd

            membership = pd.DataFrame(membership, index=experts, columns=self.get_feature_names_out())
        return (membership, weight_deviations(log_f, expert, len(experts), prior)) if return_std else membership

    def fit_transform(self, X, y, annotations=None):
        """Fit to anonymous annotations, and find the memberships of the experts of the same items.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.
        y : array-like of shape (n_samples, n_classes) or (n_samples,)
            As in `fit`; an `AnnotatedTarget` also brings the annotations.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            As in `transform`.

        Returns
        -------
        membership : ndarray or DataFrame of shape (n_experts, n_clusters), or (n_samples, n_clusters)
            As returned by `transform`.
        """
        y, annotations = matched_target(X, y, annotations)
        return self.fit(X, y).transform(X, annotations)

    def predict(self, X, annotations=None):
        """Predict the cluster of every expert, the one of the largest membership.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            As in `transform`.

        Returns
        -------
        cluster : ndarray of shape (n_experts,), or (n_samples,) without annotations
            Positions of the clusters; 0 is the cluster that agrees most with the votes.
        """
        return np.asarray(self.transform(X, annotations)).argmax(1)

    def suggest_items(self, X_pool, X=None, annotations=None, n_items=1):
        """Suggest the items whose annotations tell most about the membership of one newcomer.

        The value of an item is the expected decrease of the posterior variance of the membership, summed over the
        clusters, if the newcomer annotates it. With weights ``a`` whose posterior has mean ``m`` and covariance ``V``,
        and an answer ``t`` of probability ``Pr(t | x, a) = sum_k a_k f_t(x; theta_k)``, the value is
        ``sum_t |V f_t|^2 / (f_t' m)``. `m` and `V` are those of ``transform(..., return_std=True)``: the prior is a
        Dirichlet with parameters ``1 + membership_prior * cluster_weights_``, so that ``membership_prior=0`` is the
        flat prior, as is "auto" before the first annotation, and the first item can be chosen without any.

        Items are chosen one after another. The Fisher information of each is added to the inverse of `V` before the
        next is chosen, so that the items complement one another. If possible, ask for one item at a time and pass all
        annotations so far.

        Parameters
        ----------
        X_pool : array-like of shape (n_pool, n_features), or (n_pool, ...) with a `module`
            Items that may be suggested; leave out items that the newcomer has annotated.
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`, default=None
            Items that the newcomer has annotated. None, or an array without rows, if there are none.
        annotations : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Annotations of `X` by the newcomer; missing entries are ignored.
        n_items : int, default=1
            Number of items to suggest.

        Returns
        -------
        indices : ndarray of shape (n_items,)
            Rows of `X_pool`, in the order in which they should be asked. Items of equal value are in the order of the
            pool; with one cluster, this holds for all items.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError
            If `n_items` is no integer.
        ValueError
            If `n_items` is not between 1 and `n_pool`, only one of `X` and `annotations` is given, the annotations
            are of several experts, do not match `X` or hold an unknown class.

        See Also
        --------
        transform : Memberships after the annotations, and their standard deviations.

        Notes
        -----
        The value of the first item is exact for a posterior with this mean and covariance (law of total variance); the
        covariance is Laplace's approximation. The value holds *under the model*: if an expert is not a mixture of the
        behaviours, suggested items can lead to another membership than random ones.

        Examples
        --------
        >>> from sklearn_l2d.cluster import AnnotatorLDA
        >>> from sklearn_l2d.datasets import load_digits_crowd
        >>> crowd = load_digits_crowd(random_state=0)
        >>> lda = AnnotatorLDA(
        ...     max_epochs=10, n_anchor_epochs=5, n_consensus_epochs=5, random_state=0
        ... )
        >>> lda = lda.fit(crowd.X_anonymous, crowd.counts)
        >>> pool, answers = crowd.X_identified, crowd.annotations[:, 0]
        >>> asked = lda.suggest_items(pool, n_items=5)
        >>> asked.shape
        (5,)
        >>> left = np.setdiff1d(np.arange(len(pool)), asked)
        >>> following = left[lda.suggest_items(pool[left], pool[asked], answers[asked])]
        """
        check_is_fitted(self)
        pool = self._check_items(X_pool)
        check_n_items(n_items, len(pool))
        log_f = self._log_proba_of_one(X, annotations)
        prior = self._prior(np.array([len(log_f)]))
        weights, covariance = weight_posterior(log_f, np.zeros(len(log_f), dtype=int), 1, prior)
        proba = np.exp(np.concatenate([log_proba for _, log_proba in self._log_proba(pool)]), dtype=np.float64)
        return most_informative(proba, weights[0], covariance[0], n_items)

    def predict_annotation_proba(self, X):
        """Predict the answers of an annotator of each behaviour.

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
        """Posterior mixture of the behaviours for each item, given its votes (rho of L2D-Clusters Eq. 16).

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
        tensor = self.net_.tensor
        with own_state(grad=False):
            return np.concatenate(
                [
                    responsibilities(tensor(log_f), tensor(votes), tensor(self.alpha_))[1].cpu().numpy()
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
            Mean over votes: combine scores of chunks with the numbers of votes as weights.
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
            "auto" is the method of `score`. Perplexities by different methods are not comparable.

        Returns
        -------
        perplexity : float
            1 for a perfect prediction, `n_classes` for the uniform distribution.
        """
        if method not in ("auto", "exact", "sobol"):
            raise ValueError(f"method={method!r} is unknown; use 'auto', 'exact' or 'sobol'.")
        return float(np.exp(-self._score(X, y, self.likelihood if method == "auto" else method)))

    def used_clusters(self, X):
        """Find the clusters that account for some of the votes and are not copies of an earlier one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items on which the clusters are compared.

        Returns
        -------
        used : ndarray of bool of shape (n_clusters,)
            True where a cluster accounts for at least 1 % of the votes of `fit` and differs from each earlier such
            cluster by a total variation of at least 0.01 on some item.
        """
        check_is_fitted(self)
        distance = distances(self.net_, self._check_items(X))
        return used(self.cluster_weights_, distance[np.ix_(self._order, self._order)])

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

    @property
    def _n_features_out(self):
        return len(self.cluster_weights_)

    def _prior(self, n_labels):
        return pseudo_counts(self.membership_prior, self.cluster_weights_, n_labels)

    def _check_items(self, X, reset=False):
        return validate_data(self, X, reset=reset, dtype=self.dtype, allow_nd=self.module is not None)

    def _check_training_data(self, X, y, sample_weight, groups, classes, fresh):
        """Checked rows of a fit, which is `fresh` or continues the previous one."""
        check_net(self.get_params(deep=False))
        _, y = same_rows(X=X, y=y)
        X, y, _, weights, groups, _ = weighted_rows(X, y, None, sample_weight, groups)
        X = self._check_items(X, reset=fresh)
        counts, classes = encode_counts(y, classes=classes)
        check_row_count(counts, len(X), "y")
        counts = counts if weights is None else counts * weights[:, None]
        if fresh and self.n_clusters > len(X):
            raise ValueError(
                f"n_clusters={self.n_clusters} is larger than the number of items in X, {len(X)}; lower it."
            )
        n_left = len(self.cluster_weights_) if not fresh else self.n_clusters
        if self.n_clusters != n_left and not self.weight_concentration_prior_type:
            raise ValueError(
                f"n_clusters={self.n_clusters} cannot change while the training of {n_left} "
                "clusters goes on; set it back, or fit a clone."
            )
        return TrainingData(X, groups, *sparse_counts(counts), classes)

    def _alpha_learner(self, data):
        """What alpha is learnt from, or None where it is not learnt."""
        kind = self.weight_concentration_prior_type
        if not (self.learn_alpha or kind):
            return None
        if not whole_rows(data.votes).any():
            raise ValueError(
                "y has no item with whole numbers of votes, which learn_alpha and weight_concentration_prior_type "
                "need: pass counts without weights, or set them to False and None."
            )
        mean = check_alpha(self.alpha, self.n_clusters)
        prior, least = gamma_prior(mean), None
        if kind:
            concentration = self.weight_concentration_prior or 1 / self.n_clusters
            prior, least = weight_prior(kind, concentration, mean.sum()), -np.log(concentration)
        return AlphaLearner(data.X, data.labels, data.votes, prior, least)

    def _new_net(self, data, penalty):
        """Untrained net, its seed and the number of training calls so far; `penalty` finds the automatic one."""
        alpha = check_alpha(self.alpha, self.n_clusters)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        params = self.get_params(deep=False)
        if isinstance(self.weight_decay, str):
            params["weight_decay"] = penalty(params, data, seed)
        return build_annotation_net(params, data.X, len(data.classes), alpha, seed), seed, 0

    def _continued_net(self):
        return copy.deepcopy(self.net_), self._seed, self._n_calls

    def _finish(self, data, net, history, seed, n_calls):
        """Set the fitted attributes; the clusters are ordered by their agreement with the votes."""
        weights, agreement, distance = survey(net, data.X, data.labels, data.votes)
        order = np.argsort(-agreement, kind="stable")
        weights, distance = weights[order], distance[np.ix_(order, order)]
        if net.module_.phase == "em":  # before, clusters are alike
            warn_of_collapse(weights, distance)
        self.classes_ = data.classes
        self.cluster_weights_ = weights
        self.alpha_ = net.alpha[order]
        self.weight_decay_ = net.penalty
        self.likelihood_ = likelihood_method(data.votes, len(weights))
        self.history_ = history
        self.n_iter_ = len(history)
        self._order, self._seed, self._n_calls = order, seed, n_calls
        self.net_ = net

    def _log_proba(self, items):
        """Yield ``(rows, log_proba (b, K, C))`` of checked items, clusters in order."""
        for rows, log_proba in predict_batches(self.net_.module_.members, items, self.net_.device):
            yield rows, log_proba.cpu().numpy()[self._order].transpose(1, 0, 2)

    def _voted_log_proba(self, X, y):
        """Yield ``(log_f (b, D, K), votes (b, D))`` of the distinct classes that each item has votes for."""
        items = self._check_items(X)
        _, y = same_rows(X=X, y=y)
        counts, _ = encode_counts(y, classes=self.classes_)
        check_row_count(counts, len(items), "y")
        labels, votes = sparse_counts(counts)
        for rows, log_proba in self._log_proba(items):
            yield np.take_along_axis(log_proba, labels[rows][:, None], 2).transpose(0, 2, 1), votes[rows]

    def _score(self, X, y, method):
        check_is_fitted(self)
        parts = list(self._voted_log_proba(X, y))
        if method == "auto":
            # real-valued votes have no exact likelihood, even if those of fit were whole numbers
            method = self.likelihood_ if all(is_whole(votes) for _, votes in parts) else "sobol"
        total = sum(log_marginal(log_f, votes, self.alpha_, method).sum() for log_f, votes in parts)
        return float(total / sum(votes.sum() for _, votes in parts))

    def _log_proba_of_one(self, X, annotations):
        """Log-probability (n_annotations, K) of the annotations of one expert, who may have none."""
        if (X is None) != (annotations is None):
            given, lacking = ("annotations", "X") if X is None else ("X", "annotations")
            raise ValueError(f"{lacking} is None although {given} is given; pass both, or neither.")
        nothing = np.empty((0, len(self.cluster_weights_)))
        if X is None:
            return nothing
        table = one_column(annotations)
        if len(table) == 0 and len(X) == 0:  # scikit-learn refuses tables without rows
            return nothing
        items = self._check_items(X)
        votes = votes_beside(X, table, self.classes_, self.missing_label)
        return observed_log_proba(self._log_proba(items), votes)
