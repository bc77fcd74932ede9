"""What the methods share that learn confusion matrices from moments of the answers."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._numerics._co_labels import first_moments, likeliest_prior, shrunk, with_truth
from .._numerics._crowd_em import answer_matrix
from .._sklearn import warn
from ._base import BaseAggregator, learnt


class MomentAggregator(BaseAggregator):
    """Aggregators that say in `_estimate` what moments tell; here are known truths, people out of sight and priors.

    Known truths are one more annotator. Whom the moments do not identify has the matrix of somebody without votes.
    """

    def _estimate(self, answers, weight, n_classes):
        """Confusion matrices from moments.

        Parameters
        ----------
        answers : csr_array of shape (n, M * C)
            As returned by `answer_matrix`; the known truth may be the last annotator.
        weight : ndarray of shape (n,)
            Weights of the items.
        n_classes : int
            Number C of classes, at least 2.

        Returns
        -------
        confusion : ndarray of shape (M, C, C)
            Of those who are identified; anything for others.
        identified : ndarray of bool of shape (M,)
            Who they are.
        class_prior : ndarray of shape (C,) or None
            Probabilities of the classes; None leaves them to what annotators answer on the whole.
        history : list of float
            Objective of every iteration.
        converged : bool
            Whether they ended before their limit.
        """
        raise NotImplementedError

    def _learn(self, votes, allowed, weight):
        self._check_settings(votes)
        answers, n_classes, n_annotators = answer_matrix(votes), len(votes.classes), len(votes.annotators)
        if n_classes == 1:
            everybody = np.ones((n_annotators, 1, 1))
            answer = everybody, np.ones(n_annotators, dtype=bool), np.ones(1), [], True
        elif len(votes) < n_classes:  # whose moments have too low a rank
            nobody = np.empty((n_annotators, n_classes, n_classes)), np.zeros(n_annotators, dtype=bool)
            answer = *nobody, None, [], True
        else:
            answers = with_truth(answers, allowed)
            answer = self._estimate(answers, weight, n_classes)
        confusion, identified, class_prior, history, converged = answer
        moments = first_moments(answers, weight, n_classes)
        uniform = np.full((n_classes, n_classes), 1 / n_classes)
        confusion = np.where(identified[:, None, None], confusion, uniform)
        if not identified[:n_annotators].any():
            warn(
                f"{type(self).__name__} could tell nobody's reliability from shared items, so that labels are those of "
                "the class prior; collect more answers to the same items, or use DawidSkene.",
                ConvergenceWarning,
            )
            class_prior = moments.sum(0) / moments.sum()
        elif class_prior is None:
            class_prior = likeliest_prior(confusion[identified], moments[identified])
        n_answers = moments.sum(1) * identified
        confusion = shrunk(confusion, class_prior, n_answers, self.prior)[:n_annotators]
        return {
            **learnt(confusion, uniform, class_prior, history, converged),
            "identified_": identified[:n_annotators],
        }

    def _check_settings(self, votes):
        """Refuse votes that the method cannot use."""
