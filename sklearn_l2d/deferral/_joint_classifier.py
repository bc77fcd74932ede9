"""A classifier that is trained beside a gate, an epoch at a time, and is judged out of fold all the while."""

import numpy as np
from sklearn.model_selection import KFold

from .._numerics._answers import fit_temperature, temper
from .._torch._answer_net import predict_answers


class JointClassifier:
    """Ensemble whose first net learns all rows; each of the others leaves out a fold, on which it is honest.

    Parameters
    ----------
    net : AnswerNet
        Untrained; one member and another for each fold.
    classes : ndarray of shape (C,)
        Class labels.
    dtype : str
        Floating type of the items.
    """

    def __init__(self, net, classes, dtype):
        self.net_, self.classes_, self._dtype = net, classes, dtype

    def predict_proba(self, X):
        """Probabilities (n, C) of the classes."""
        return predict_answers(self.net_, np.asarray(X, dtype=self._dtype))[:, 0]

    def predict(self, X):
        """Most probable labels."""
        return self.classes_[self.predict_proba(X).argmax(1)]

    def judge(self, items, y_codes, fold):
        """Honest, tempered probabilities (n, C) on the rows it learns from, and the temperature."""
        proba = predict_answers(self.net_, items)[np.arange(len(items)), 1 + fold]
        log_proba = np.log(np.maximum(proba, np.finfo(float).tiny))
        temperature = fit_temperature(log_proba, y_codes)
        return np.exp(temper(log_proba, temperature)), temperature


def lessons(y_codes, n_folds, seed):
    """Fold (n,) of every row, and what each net of a `JointClassifier` learns (n, 1 + n_folds): -1 is left out."""
    fold = np.empty(len(y_codes), dtype=int)
    for k, (_, unseen) in enumerate(KFold(n_folds, shuffle=True, random_state=seed).split(y_codes)):
        fold[unseen] = k
    left_out = fold[:, None] == np.arange(-1, n_folds)
    return fold, np.where(left_out, -1, y_codes[:, None])
