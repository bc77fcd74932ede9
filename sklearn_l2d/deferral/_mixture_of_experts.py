"""The mixture of experts of Hemmer et al. (2022): a classifier and an allocator with one likelihood."""

from functools import partial

from .._torch._losses import mixture_loss
from ._surrogate import JointDeferrer, softmax_link


class MixtureOfExpertsDeferral(JointDeferrer):
    """Train a classifier and an allocator together by the likelihood of the truth under the team.

    The loss is ``-ln(w_0 p(y | x) + sum_j w_j 1(m_j = y))``, where w are the allocator's weights of the classifier and
    the experts; the largest weight decides (Hemmer et al. 2022, after Multi-L2D 3.3). Both are outputs of one net.

    Parameters
    ----------
    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes in the loss.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    module, hidden_layer_sizes, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Parameters of the net, as in `AnnotatorLDA`. The defaults are None, (32,), "sgd", 0.05, 0.9, 0.01, 64 and 60.

    device : str, default="auto"
        Device of the training: "auto", "cpu", "cuda", "cuda:1", and so on. "auto" is CUDA if there is a CUDA device,
        else the CPU.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the net and of the draws of `assign_experts`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of `y` and `annotations`.
    classifier_ : object
        The classifier in the first outputs of the net, with `predict` and `predict_proba`.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    targets_ : ndarray of shape (n_targets,)
        Names of the targets: every expert of `fit` is one.
    omega_ : ndarray or csr_array of shape (n_experts, n_targets)
        Memberships of the experts in the targets. Rows sum to 1. It is sparse if every expert is a target and it has
        more than ten million entries.
    selection_ : ndarray or csr_array of shape (n_targets, n_experts)
        Weights by which each target selects its members. Rows sum to 1; a target without members has a row of zeros. It
        is sparse if `omega_` is.
    net_ : object
        The trained net; its interface is private.
    temperature_ : float
        1: the probabilities of the classifier are used as they are.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Share of the items that each target decides, the classifier last, for `X_unlabeled` or else the labelled items.
    coverage_ : float
        Share of the items that the classifier decides, the last entry of `target_shares_`.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    n_iter_ : int
        Number of epochs of the net.
    history_ : list of dict
        Phase, loss and duration (seconds) of every epoch.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    OneStageDeferral : Joint losses that are consistent.
    TwoStageDeferral : A rejector for a fixed classifier.

    Notes
    -----
    When not to use it: this is a baseline. The loss is not consistent (Multi-L2D Proposition A.4). An example is
    simpler than the proof: with C equally likely classes and an expert who is right with probability p on each, the
    weight of the classifier at the minimum is ``C (1 - p) / (C - 1)``. The classifier therefore decides up to
    ``p = 1/2 + 1 / (2 C)``, although the expert is better above ``1 / C``. On an item that the classifier does not
    decide, it is trained only in proportion to its weight.

    Published code adds 1e-7 inside the logarithm. Here the sum is a log-sum-exp over the classifier's term, which is
    always finite, and the experts who are right, so that there is no floor. An expert is left out of the weights of a
    row if the annotation is missing; published code needs complete annotations. An expert without annotations is never
    asked.

    References
    ----------
    Hemmer et al. (2022), Forming effective human-AI teams: building machine learning models that complement the
    capabilities of multiple experts. Multi-L2D, section 3.3 and appendix A.4.

    Examples
    --------
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import MixtureOfExpertsDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = MixtureOfExpertsDeferral(random_state=0)
    >>> team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
    MixtureOfExpertsDeferral(random_state=0)
    >>> team.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > 0.8
    True
    """

    def _row_loss(self):
        return partial(mixture_loss, n_classes=len(self.classes_))

    def _n_outputs(self):
        return super()._n_outputs() + 1

    def _link(self):
        return softmax_link

    def _option_scores(self, logits):
        return logits[:, len(self.classes_) :]
