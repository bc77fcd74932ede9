"""Likelihood of the truth given the answers of many experts, most of whom did not answer."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.special import log_softmax, softmax

from ._answers import expected_likelihood
from ._matrices import ragged_rows, row_blocks, row_chunks


class Evidence(NamedTuple):
    """Log-likelihood ``ln p(y | answer)`` of n items for M experts and the classifier, less the cost of asking.

    Where an expert did not answer, it depends on the class of the item only, so that a table of all pairs is not made.

    Attributes
    ----------
    y_codes : ndarray of int of shape (n,)
        True classes.
    absent : ndarray of shape (C, M)
        Log-likelihood where an expert did not answer, by class.
    item, expert : ndarrays of int of shape (n_answers,)
        Who answered which item, in the order of the items.
    given : ndarray of shape (n_answers,)
        Log-likelihood of these answers.
    classifier : ndarray of shape (n,)
        Log-likelihood of the classifier.
    """

    y_codes: np.ndarray
    absent: np.ndarray
    item: np.ndarray
    expert: np.ndarray
    given: np.ndarray
    classifier: np.ndarray

    @property
    def shape(self):
        """Shape (n, M + 1) of the table that it stands for."""
        return len(self.y_codes), self.absent.shape[1] + 1

    def table(self):
        """The same as an array (n, M + 1), the classifier last."""
        people = self.absent[self.y_codes]
        people[self.item, self.expert] = self.given
        return np.column_stack([people, self.classifier])

    def __getitem__(self, rows):
        """The evidence of some items, by position."""
        item, answer = ragged_rows(np.searchsorted(self.item, np.arange(len(self.y_codes) + 1)), rows)
        return self._replace(
            y_codes=self.y_codes[rows],
            item=item,
            expert=self.expert[answer],
            given=self.given[answer],
            classifier=self.classifier[rows],
        )

    def of_targets(self, selection):
        """Log-likelihood (n, K + 1) of the mixture of the members of each target, and of the classifier.

        Parameters
        ----------
        selection : ndarray of shape (K + 1, M + 1)
            Selection weights, the classifier last, as a target and as its only member.
        """
        mixture = Mixture(self, selection)
        with np.errstate(divide="ignore"):
            return np.log(mixture.of_targets) + mixture.peak[:, None]


class Mixture:
    """Mixtures of the likelihoods of the members of each target, tilted, and sums over items.

    Parameters
    ----------
    evidence : Evidence
    selection : ndarray of shape (K + 1, M + 1)
        Selection weights, the classifier last.
    tilt : ndarray of shape (M + 1,), default=None
        Added to the log-likelihoods of each expert and the classifier.

    Attributes
    ----------
    peak : ndarray of shape (n,)
        Logarithms by which the likelihoods of each item are scaled.
    of_targets : ndarray of shape (n, K + 1)
        Scaled likelihood of each target.
    """

    def __init__(self, evidence, selection, tilt=None):
        tilt = np.zeros(selection.shape[1]) if tilt is None else tilt
        y, item, expert = evidence.y_codes, evidence.item, evidence.expert
        absent, given = evidence.absent + tilt[:-1], evidence.given + tilt[expert]
        classifier = evidence.classifier + tilt[-1]
        top = absent.max(1, initial=-np.inf)
        top[~np.isfinite(top)] = 0.0  # nobody may serve
        self.y, self.item, self.expert, self.people = y, item, expert, selection[:-1, :-1]
        self.absent = np.exp(absent - top[:, None])
        self.peak = np.maximum(top[y], classifier)
        np.maximum.at(self.peak, item, given)
        self.scale = np.exp(top[y] - self.peak)
        self.given = np.exp(given - self.peak[item])
        self.beyond = self.given - self.absent[y[item], expert] * self.scale[item]
        self.of_classifier = np.exp(classifier - self.peak)
        of_people = (self.absent @ self.people.T)[y] * self.scale[:, None]
        for k, weights in enumerate(self.people):
            member = weights[expert]
            of_people[:, k] += np.bincount(item, member * self.beyond, minlength=len(y))
            # where all members answered, the sum is theirs, without the rounding errors of a difference
            complete = np.bincount(item, member > 0, minlength=len(y)) == (weights > 0).sum()
            answered = np.bincount(item, member * self.given, minlength=len(y))
            of_people[:, k] = np.where(complete, answered, np.maximum(of_people[:, k], answered))
        self.of_targets = np.column_stack([of_people, self.of_classifier])

    def total(self, gate):
        """Sums (K + 1, M + 1) over the items of the likelihoods, by weights (n, K + 1) of the targets."""
        people = gate[:, :-1]
        by_class = np.array([np.bincount(self.y, g * self.scale, minlength=len(self.absent)) for g in people.T])
        sums = np.zeros((gate.shape[1], self.absent.shape[1] + 1))
        sums[:-1, :-1] = by_class.reshape(people.shape[1], -1) @ self.absent
        for k, g in enumerate(people.T):
            sums[k, :-1] += np.bincount(self.expert, self.beyond * g[self.item], minlength=self.absent.shape[1])
        sums[-1, -1] = gate[:, -1] @ self.of_classifier
        return sums

    def posterior(self, gate, experts):
        """Posterior (n, len(experts)) of some experts, from weights (n, K + 1) of the targets, as a `FactoredMatrix`.

        Where nobody answered, it depends on the class and the weights of an item only.
        """
        n, (n_targets, n_experts), n_classes = len(self.y), self.people.shape, len(self.absent)
        blocks = self.y[:, None] * n_targets + np.arange(n_targets)
        columns = np.column_stack([blocks, np.full(n, n_classes * n_targets)])
        values = np.column_stack([gate[:, :-1] * self.scale[:, None], gate[:, -1] * self.of_classifier])
        starts = np.arange(n + 1) * (n_targets + 1)
        shape = n, n_classes * n_targets + 1
        table = csr_array((values.ravel(), columns.ravel(), starts), shape=shape)
        rows = np.zeros((shape[1], n_experts + 1))
        rows[:-1, :-1] = (self.absent[:, None] * self.people).reshape(-1, n_experts)
        rows[-1, -1] = 1.0
        weight = (gate[self.item, :-1] * self.people[:, self.expert].T).sum(1)
        place = (self.item, self.expert)
        cells = csr_array(coo_array((self.beyond * weight, place), shape=(n, n_experts + 1)))
        return FactoredMatrix(table, rows[:, experts], cells[:, experts])


class FactoredMatrix(NamedTuple):
    """The matrix ``table @ rows + cells`` of n rows, of which only the parts are stored.

    Attributes
    ----------
    table : csr_array of shape (n, R)
    rows : ndarray of shape (R, J)
    cells : csr_array of shape (n, J)
    """

    table: csr_array
    rows: np.ndarray
    cells: csr_array

    def times(self, vector):
        """Product (n,) with a vector (J,)."""
        return self.table @ (self.rows @ vector) + self.cells @ vector

    def transposed_times(self, vector):
        """Product (J,) of the transpose with a vector (n,)."""
        return self.rows.T @ (self.table.T @ vector) + self.cells.T @ vector

    def gram(self, weight):
        """Products (J, J) of all pairs of columns, with weights (n,) of the rows."""
        weighted = diags_array(weight)
        inner = (self.table.T @ weighted @ self.table).toarray()
        across = self.rows.T @ (self.table.T @ weighted @ self.cells).toarray()
        return self.rows.T @ inner @ self.rows + across + across.T + (self.cells.T @ weighted @ self.cells).toarray()


def answer_evidence(votes, y_codes, classifier_proba, likelihood, correctness, price):
    """`Evidence` of votes on items of known truth.

    Parameters
    ----------
    votes : Votes
        Answers of the M experts, with the classes of the team.
    y_codes : ndarray of int of shape (n,)
        True classes.
    classifier_proba : ndarray of shape (n, C)
        Class probabilities of the classifier.
    likelihood : ndarray of shape (C, C)
        Of the truth given an answer, as returned by `answer_likelihood`.
    correctness : ndarray of shape (M, C)
        Of the experts on each class.
    price : ndarray of shape (M,)
        Cost of asking, in nats.
    """
    item, expert = votes.item.astype(np.intp), votes.annotator.astype(np.intp)
    given = np.log(likelihood)[y_codes[item], votes.label] - price[expert]
    absent = np.log(absent_likelihood(likelihood, correctness)) - price
    classifier = np.log(expected_likelihood(classifier_proba, y_codes, likelihood))
    return Evidence(y_codes, absent, item, expert, given, classifier)


def combined_evidence(votes, y_codes, classifier_proba, log_likelihood, price, floor):
    """`Evidence` that the label by the classifier and one answer together is right, or by the classifier alone.

    An expert then stands for what the answer adds to the classifier. Where nobody answered, the likelihood is that of
    all answers on items of the class.

    Parameters
    ----------
    votes, y_codes, classifier_proba, price
        As in `answer_evidence`.
    log_likelihood : ndarray of shape (n_answers, C)
        Of every answer for every possible truth, from a model that has not seen it.
    floor : float
        Least probability of the truth, and of other classes.
    """
    item, expert = votes.item.astype(np.intp), votes.annotator.astype(np.intp)
    alone = classifier_proba[np.arange(len(y_codes)), y_codes].clip(floor, 1 - floor)
    log_proba, truth, n_classes = np.log(classifier_proba), y_codes[item], classifier_proba.shape[1]
    together = np.empty(len(item))
    for some in row_blocks(len(item), n_classes):
        fused = log_softmax(log_proba[item[some]] + log_likelihood[some], axis=1)
        together[some] = fused[np.arange(len(fused)), truth[some]]
    together = np.exp(together).clip(floor, 1 - floor)
    n_answers = np.bincount(truth, minlength=n_classes)
    mean = (np.bincount(truth, together, n_classes) + 1) / (n_answers + 2)
    return Evidence(
        y_codes, np.log(mean)[:, None] - price, item, expert, np.log(together) - price[expert], np.log(alone)
    )


def joined_likelihood(log_proba, item, log_likelihood, y_codes, likelihood, cost=None):
    """Likelihood (n_answers,) of the truth of each answered item given the label by the classifier and this one answer.

    Parameters
    ----------
    log_proba : ndarray of shape (n, C)
        Log-probabilities of the classifier.
    item : ndarray of int of shape (n_answers,)
        Item of every answer.
    log_likelihood : ndarray of shape (n_answers, C)
        Of every answer for every possible truth.
    y_codes : ndarray of int of shape (n,)
        True classes.
    likelihood : ndarray of shape (C, C)
        Of the truth given a label, as returned by `answer_likelihood`.
    cost : ndarray of shape (C, C), default=None
        Cost of deciding for the class of the column where that of the row is true; None if every error costs 1.
    """
    label = np.empty(len(item), dtype=np.intp)
    for some in row_blocks(len(item), log_proba.shape[1]):
        label[some] = _decided(softmax(log_proba[item[some]] + log_likelihood[some], axis=1).T, cost)
    return likelihood[y_codes[item], label]


def absent_joined_likelihood(proba, y_codes, answering, likelihood, cost=None):
    """As `joined_likelihood`, integrated over an answer that was not given: (n, M) for M people.

    Parameters
    ----------
    proba : ndarray of shape (n, C)
        Class probabilities of the classifier.
    y_codes, likelihood, cost
        As in `joined_likelihood`.
    answering : ndarray of shape (C, M, C)
        Probabilities of the answers (last) of M people, given the truth (first).
    """
    n_classes, n_people = answering.shape[:2]
    flat, absent = answering.reshape(n_classes, -1), np.empty((len(proba), n_people))
    for rows in row_chunks(len(proba), flat.size):
        y = y_codes[rows]
        label = _decided(proba[rows].T[:, :, None] * flat[:, None], cost)
        absent[rows] = (flat[y] * likelihood[y[:, None], label]).reshape(-1, n_people, n_classes).sum(2)
    return absent


def _decided(joint, cost):
    """Labels by (joint) probabilities (C, ...) of the truth."""
    return joint.argmax(0) if cost is None else np.tensordot(cost.T, joint, 1).argmin(0)


def absent_likelihood(likelihood, correctness):
    """Likelihood (C, M) of each class as the truth for a missing annotation, integrated over the answer.

    The integral (PL2D Eq. 17, corrected: exact, no mean field) assumes that the answer is right with the expert's
    correctness (M, C) on the true class, and that wrong answers are uniform. In experiments, the behaviours of a
    clusterer, which do not know the truth, told experts apart less well.
    """
    right, when_right = correctness.T, np.diagonal(likelihood)[:, None]
    when_wrong = (likelihood.sum(1, keepdims=True) - when_right) / (len(likelihood) - 1)
    return right * when_right + (1 - right) * when_wrong
