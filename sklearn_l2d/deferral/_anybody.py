"""A team of interchangeable experts: one target, "anybody", whom everybody joins without training."""

import numpy as np

from .._validation import name_list
from .._votes import Votes
from ._answer_model import count_votes


def form_anybody(deferrer, **details):
    """Make all experts of a deferrer one target; further arguments are details of its roster."""
    deferrer._set_targets(np.array(["anybody"], dtype=object), np.ones((deferrer.n_experts_, 1)), **details)


def join_anybody(deferrer, experts, X, annotations, y):
    """Add experts to the target of a deferrer; arguments as in `RandomExpertDeferral.onboard`."""
    if len(deferrer.targets_) == 0:
        raise ValueError("fitted without experts: there is no group to join; call fit with annotations.")
    names = name_list(experts, deferrer.experts_)
    n_classes = len(deferrer.classes_)
    counts = count_votes(Votes([], [], [], 0, deferrer.classes_, names), np.empty((0, n_classes)))
    if annotations is not None:
        if X is None:
            raise ValueError("X is None, but annotations are answers to items; pass these items, or neither.")
        _, items, votes, y = deferrer._check_newcomers(names, X, annotations, y)
        if y is not None:
            y_codes, known = deferrer._check_truth(X, y)
            counts = deferrer._count_newcomers(votes, deferrer._truth_before_answers(items, known, y_codes), known)
    nothing = dict.fromkeys(deferrer._roster.details, np.zeros(len(names)))
    newcomers = deferrer._roster.newcomers(names, np.ones((len(names), 1)), counts, nothing)
    deferrer._set_roster(deferrer._roster.joined_by(newcomers))
