"""Prediction sets that hold the true class with a given probability."""

import math

import numpy as np


def n_scores_needed(level):
    """Least number of items of known truth by which sets of this level leave out any class."""
    return math.ceil(level / (1 - level) - 1e-9)


def set_threshold(proba, level, weight):
    """Least probability of a class in a prediction set.

    Split conformal sets by the score ``1 - p(y | x)`` (Sadinle, Lei and Wasserman, 2019): a set of all classes of at
    least this probability holds the true class of an item that is drawn like the n given ones with probability
    `level` at least, and at most ``1 / (n + 1)`` more if no probabilities are equal.

    Parameters
    ----------
    proba : ndarray of shape (n,)
        Probabilities of the true classes of items that the classifier was not fitted to.
    level : float
        Probability with which a set holds the true class.
    weight : ndarray of shape (n,)
        How often each item counts.

    Returns
    -------
    threshold : float
        -1 where n is too small: all classes are in every set.
    """
    order = np.argsort(-proba, kind="stable")
    counted = np.cumsum(weight[order])
    enough = np.flatnonzero(counted >= level * (counted[-1] + 1) - 1e-9)
    return float(proba[order[enough[0]]]) if len(enough) else -1.0
