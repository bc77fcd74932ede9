"""The mixture of experts of Hemmer et al. (2022): classifier and allocator on one likelihood."""

from functools import partial

from .._torch._losses import mixture_loss
from ._surrogate import JointDeferrer, softmax_link


class MixtureOfExpertsDeferral(JointDeferrer):
    """Train a classifier and an allocator together on the likelihood of the truth under the whole team.

    The loss is ``-ln(w_0 p(y | x) + sum_j w_j 1(m_j = y))``, where w are the allocator's weights of the classifier and
    the experts; the largest weight decides (Hemmer et al. 2022, after Multi-L2D 3.3). One net gives both.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the loss of a row.

    missing_label : object, default=None
        Marker of a missing annotation; None takes NaN, None, pandas.NA, masked entries and -1 unless it is a class.

    module, hidden_layer_sizes, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Of the net, as in `AnnotatorLDA`; defaults None, (32,), "sgd", 0.05, 0.9, 0.01, 64 and 60.

    device : str, default="auto"
        "auto" takes CUDA when there is one.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the net and of the draws of `assign_experts`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in `y`.
    classifier_ : object
        The first outputs of the net, with `predict` and `predict_proba`.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    targets_ : ndarray of shape (n_targets,)
        The experts of `fit`: everybody is a target.
    omega_ : ndarray of shape (n_experts, n_targets)
        Who is which target.
    selection_ : ndarray of shape (n_targets, n_experts)
        The same, transposed.
    net_ : object
        The trained net; private in everything but name.
    temperature_ : float
        1: the classifier is taken as it is.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Shares of the unlabelled items of `fit`, else of the labelled ones, the classifier last.
    coverage_ : float
        The classifier's share.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert serves.
    n_iter_ : int
        Epochs run.
    history_ : list of dict
        Loss of every epoch.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    OneStageDeferral : Joint losses that are consistent.
    TwoStageDeferral : A rejector around a classifier that stays as it is.

    Notes
    -----
    When not to use it: this is a baseline. The loss is not consistent (Multi-L2D Proposition A.4), and a fixed
    distribution shows it more plainly than the proof, whose distribution changes along its sequence: with C equally
    likely classes and an expert who is right with probability p on each, the weight of the classifier at the minimum is
    ``C (1 - p) / (C - 1)``, so that it decides until ``p = 1/2 + 1 / (2 C)``, while the expert is better from ``1 / C``
    on. The classifier is also trained where it does not decide only as far as its weight goes.

    Published code adds 1e-7 inside the logarithm. Here the sum is a log-sum-exp over the classifier's term, which is
    always finite, and the experts who were right, so that there is no floor. A missing annotation takes the expert out
    of the weights of that row; published code needs complete annotations. An expert without any is never asked.

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
