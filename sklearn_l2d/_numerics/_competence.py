"""How competent each expert is per class, and how sure that is: moments of a Beta posterior."""

import numpy as np

from ._profiles import own_correctness


def competence_posterior(right, seen, center, strengths):
    """Mean and variance of the competence of each expert per class.

    The competence in a class has a Beta prior around the expert's own correctness, which in turn has one around the
    correctness of everybody.

    Parameters
    ----------
    right, seen : ndarrays of shape (M, C)
        Right answers and answers, as returned by `tally_answers`.
    center : float
        Correctness of everybody.
    strengths : tuple of float
        Answers that the prior of an expert and the prior of a class count as. With an infinite first one nothing is
        learnt about an expert from other classes: the classes then have the prior
        ``Beta(strengths[1] * center, strengths[1] * (1 - center))`` each.

    Returns
    -------
    mean, variance : ndarrays of shape (M, C)
    """
    if np.isinf(strengths[0]):
        own, own_variance = np.full((len(right), 1), center), 0.0
    else:
        own = own_correctness(right, seen, center, strengths[0])[:, None]
        own_variance = own * (1 - own) / (seen.sum(1, keepdims=True) + strengths[0] + 1)
    size = seen + strengths[1]
    mean = (right + strengths[1] * own) / size
    inherited = (strengths[1] / size) ** 2 * own_variance  # what the doubt about the expert adds to that about a class
    return mean, (mean * (1 - mean) - inherited) / (size + 1) + inherited
