"""Max-MIG: a classifier and an aggregator of votes that tell as much as possible about each other."""

from functools import partial

import numpy as np
from scipy.special import softmax

from .._numerics._crowd_em import answer_matrix, count_answers_of, vote_shares
from .._torch._annotator_modules import AnnotatorNet, ConfusionModule
from .._torch._crowd_net import entries
from .._torch._net import predict_log_proba
from ._base import ConfusionNetClassifier, average_prior, steps


class AgreementNet(AnnotatorNet):
    """Net trained to agree with an aggregator, whose weights are those of its `module_`.

    Attributes
    ----------
    log_prior : ndarray of shape (C,)
        Log-probabilities of the classes.
    """

    def batch_loss(self, logits, targets, X):
        answers, truth = targets
        row, annotator, label = answers.T
        log_f, log_prior = logits.log_softmax(-1), self.tensor(self.log_prior, dtype=logits.dtype)
        votes = log_prior.expand_as(log_f).index_add(0, row, entries(self.module_.log_confusion(), annotator, label))
        known = truth >= 0
        of_truth = log_f.gather(1, truth.clamp(min=0).unsqueeze(1)).squeeze(1) * known
        heard = known.new_zeros(len(known)).index_fill(0, row, True).nonzero().squeeze(1)
        # ln sum_c f_c(item) g_c(votes) / prior_c for every item and the votes on every item; classes are the first axis
        of_item, of_votes = (part.index_select(0, heard).T for part in (log_f - log_prior, votes.log_softmax(-1)))
        agreement = (of_item.unsqueeze(2) + of_votes.unsqueeze(1)).logsumexp(0)
        same = agreement.diagonal()
        n_others = max(1, len(same) * (len(same) - 1))
        others = (agreement.exp().sum() - same.exp().sum()) / n_others
        return others - same.sum() / max(1, len(same)) - of_truth.sum() / known.sum().clamp(min=1)


class MaxMIGClassifier(ConfusionNetClassifier):
    """Net and aggregator that tell as much as possible about each other (Max-MIG, Cao et al. 2019).

    The aggregator gives every item the probabilities ``softmax(sum_m W_m[answer_m] + b)``. Net and aggregator maximise
    a lower bound of the mutual information of items and votes: how much better they agree on an item than on two that
    are drawn at random. It needs no model of how annotators err, as long as their answers tell about the item through
    its class alone (crowd tutorial, part II). The confusion matrices count answers by what both find at the end.
    Corrected: means are over the items of a batch that somebody answered, whatever their number, and nothing is added
    to the votes.


    Parameters
    ----------
    hidden_layer_sizes, module, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Parameters of the net, as in `NetClassifier`.

    init : {"majority", "dawid_skene"} or float, default="majority"
        Where the annotators start: at their agreement with the majority, or with the consensus of Dawid and Skene,
        which goes astray where people have few votes; a number between 0 and 1 is everybody's accuracy.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    device, dtype, verbose, random_state
        As in `NetClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    annotators_ : ndarray of shape (n_annotators,), dtype=object
        Names of the annotators.
    confusion_matrices_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability of an answer (last axis) given the true class, of every annotator.
    n_iter_ : int
        Number of epochs of the net.
    history_ : list of dict
        Phase, loss and duration (seconds) of every epoch.
    net_ : object
        The trained net; its interface is private.
    device_ : str
        Device of the net.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    AggNetClassifier : With a model of the annotators.

    References
    ----------
    Cao, Xu, Kong and Wang, Max-MIG: an information theoretic approach for joint learning from crowds, ICLR 2019.

    Examples
    --------
    >>> from sklearn_l2d.crowd import MaxMIGClassifier
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> model = MaxMIGClassifier(max_epochs=20, random_state=0)
    >>> model.fit(crowd.X_identified, annotations=crowd.annotations).score(
    ...     crowd.X_test, crowd.y_test
    ... ) > 0.8
    True
    """

    _kind = AgreementNet

    def _make_module(self, build, votes, truth):
        # in the loss, an item counts as much as its answers together do elsewhere
        speed = steps(votes, self.batch_size) * len(votes) / max(1, len(votes.item))
        return partial(ConfusionModule, build, self._start(votes, truth), speed)

    def _context(self, votes):
        shares = np.bincount(votes.label, minlength=len(votes.classes)) + 1.0
        return {"log_prior": np.log(shares / shares.sum())}

    def _learnt(self, net, items, votes):
        everything = np.ones((len(votes), len(votes.classes)), dtype=bool)
        weights = net.module_.log_confusion().detach().cpu().double().numpy()
        n_annotators, n_classes, _ = weights.shape
        answers = answer_matrix(votes)
        of_votes = answers @ weights.transpose(0, 2, 1).reshape(n_annotators * n_classes, n_classes)
        truth = softmax(predict_log_proba(net, items) + of_votes, axis=1)
        counts = count_answers_of(answers, truth, n_annotators)
        counts += average_prior(count_answers_of(answers, vote_shares(votes, everything), n_annotators))
        return {"confusion_matrices_": np.ascontiguousarray(counts / counts.sum(2, keepdims=True))}
