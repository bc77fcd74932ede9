"""The steps of the story of answers: how many an item needs, and what simpler ways of asking reach with as many."""

from dataclasses import dataclass

import numpy as np
from sklearn.naive_bayes import GaussianNB

from ..annotations import to_counts
from ..deferral import ConfidenceDeferral, PanelDeferral
from ._onboarding import fit_scaler
from ._routing import measure_ability, with_truth

BUDGETS = (0.25, 0.5, 1.0, 2.0, 3.0)
PANEL, CONFIDENCE = "panel", "ConfidenceDeferral"
RANDOM_MAJORITY, BEST_MAJORITY = "majority of random people", "majority of the best people"
_MOST = 3  # answers to an item that are told apart


@dataclass
class Asking:
    """What is right after how many answers.

    Attributes
    ----------
    n_experts, n_labelled : int
        Experts, and labelled items of known truth.
    answers : dict of str to ndarray of shape (n_budgets,)
        Answers per item of the panel and its rivals, which get as many but may ask for fewer.
    right : dict of str to ndarray of bool of shape (n_budgets, n_items)
        Which labels of the items kept for tests are right then.
    classifier_right : ndarray of bool of shape (n_items,)
        The same without any answer.
    one_answer : ndarray of shape (_MOST + 1,)
        Shares of the items that get no answer, one, two, ..., and _MOST or more, at one answer per item on average.
    """

    n_experts: int
    n_labelled: int
    answers: dict
    right: dict
    classifier_right: np.ndarray
    one_answer: np.ndarray


def count_answers(crowd, settings):
    """Fit a panel to the identified items whose truth is known, and replay its asking on the test items."""
    rows, active = with_truth(crowd)
    test = (crowd.annotations_test[:, active] >= 0).any(1)
    scale = fit_scaler(crowd.X).transform
    data = (scale(crowd.X_identified[rows]), crowd.y_identified[rows], crowd.annotations[np.ix_(rows, active)])
    groups = crowd.sources_of(rows)
    X, y, recorded = scale(crowd.X_test[test]), crowd.y_test[test], crowd.annotations_test[np.ix_(test, active)]

    fixed = {"classifier": GaussianNB(var_smoothing=0.1), "random_state": settings.seed}  # as `form_team` has it
    panel = PanelDeferral(**fixed).fit(*data, X_unlabeled=scale(crowd.X), groups=groups)
    budgets = [budget for budget in BUDGETS if budget <= len(active)]
    replays = [p.replay(X, recorded) for p in panel.answers_path(budgets, X, available=recorded >= 0)]
    answers = {PANEL: np.array([replay.n_answers.mean() for replay in replays])}
    right = {PANEL: np.array([replay.labels == y for replay in replays])}

    classes, proba = panel.classes_, panel.predict_proba(X)
    one = ConfidenceDeferral(**fixed).fit(*data, groups=groups)
    chance = np.random.default_rng(settings.seed).random(recorded.shape)
    ability = np.broadcast_to(measure_ability(data[2], data[1]), recorded.shape)
    rivals = {
        RANDOM_MAJORITY: in_turns(proba, recorded, chance),
        BEST_MAJORITY: in_turns(proba, recorded, -ability),
        CONFIDENCE: surest_person(one, X, recorded),
    }
    for name, (item, expert) in rivals.items():
        asked = [slice(round(mean * len(y))) for mean in answers[PANEL]]
        answers[name] = np.array([len(item[part]) / len(y) for part in asked])
        right[name] = np.array([majority(proba, recorded, item[part], expert[part], classes) == y for part in asked])
    each = replays[budgets.index(1.0)].n_answers.clip(max=_MOST)
    return Asking(
        n_experts=len(active),
        n_labelled=len(rows),
        answers=answers,
        right=right,
        classifier_right=panel.predict(X) == y,
        one_answer=np.bincount(each, minlength=_MOST + 1) / len(y),
    )


def in_turns(proba, recorded, order):
    """Questions, the most urgent first: one person about each item, then a second one; least sure items first.

    People are asked by `order`, the lowest first, a table with the shape of `recorded`.
    """
    people = np.where(recorded >= 0, order, np.inf).argsort(axis=1, kind="stable")
    item, turn = np.nonzero(np.take_along_axis(recorded, people, axis=1) >= 0)
    first = np.lexsort((proba.max(1)[item], turn))
    return item[first], people[item, turn][first]


def surest_person(one, X, recorded):
    """Questions, the most urgent first: whoever is likeliest to be right, if likelier than the classifier."""
    scores = one.decision_function(X)
    people = np.where(recorded >= 0, scores[:, :-1], -np.inf)
    best, lead = people.argmax(1), people.max(1) - scores[:, -1]
    first = np.argsort(-lead, kind="stable")[: np.count_nonzero(lead > 0)]
    return first, best[first]


def majority(proba, recorded, item, expert, classes):
    """Labels by most votes; the classifier decides between equal ones, and where there are none."""
    given = np.full_like(recorded, -1)
    given[item, expert] = recorded[item, expert]
    return classes[(to_counts(given, classes=classes) + 0.5 * proba).argmax(1)]
