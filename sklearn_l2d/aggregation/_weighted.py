"""What the methods share whose labels are weighted votes."""

import numpy as np

from .._numerics._co_labels import first_moments
from .._numerics._crowd_em import answer_matrix, count_answers_of, posterior_of, tied_classes
from ._base import BaseAggregator, learnt


def evidence_scale(weights, accuracy, n_answers, n_classes):
    """Positive factor that turns weights of votes into evidence in nats, as near as can be.

    By least squares over the answers, from the evidence of a vote whose author is right with a known probability.

    Parameters
    ----------
    weights, accuracy, n_answers : ndarray of shape (M,)
        Weight of each annotator's votes, probability that they are right, and their number.
    n_classes : int
        Number of classes, at least 2.
    """
    accuracy = np.clip(accuracy, 1e-6, 1 - 1e-6)
    evidence = np.log(accuracy * (n_classes - 1) / (1 - accuracy))
    size = n_answers @ weights**2
    return max(float(n_answers @ (weights * evidence)) / size, 1e-3) if size > 0 else 1.0


class WeightedAggregator(BaseAggregator):
    """Aggregators that learn `annotator_weights_`: the class with the largest sum of weights wins."""

    def _weighted(self, votes, allowed, weight, weights, history, converged):
        """Fitted attributes, from weights (M,) of annotators; the rest follows from the labels that they give."""
        answers, n_classes = answer_matrix(votes), len(votes.classes)
        sums = np.where(allowed, answers @ np.kron(weights[:, None], np.eye(n_classes)), -np.inf)
        best = tied_classes(sums) * weight[:, None]
        counts = count_answers_of(answers, best / (best > 0).sum(1, keepdims=True), len(weights)) + 1
        confusion = counts / counts.sum(2, keepdims=True)
        class_prior, uniform = np.full(n_classes, 1 / n_classes), np.full((n_classes, n_classes), 1 / n_classes)
        accuracy = np.einsum("acc,c->a", confusion, class_prior)
        n_answers = first_moments(answers, weight, n_classes).sum(1)
        return {
            **learnt(confusion, uniform, class_prior, history, converged),
            "annotator_weights_": weights,
            "_evidence_scale": evidence_scale(weights, accuracy, n_answers, n_classes) if n_classes > 1 else 1.0,
        }

    def _proba(self, votes):
        weights = np.pad(self.annotator_weights_, (0, len(votes.annotators) - len(self.annotators_)))
        n_classes = len(self.classes_)
        sums = answer_matrix(votes) @ np.kron(weights[:, None], np.eye(n_classes))
        return posterior_of(self._evidence_scale * sums + np.log(self.class_prior_))[0]
