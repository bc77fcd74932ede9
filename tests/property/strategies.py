"""Hypothesis strategies shared by the property tests."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

MAX_CLASSES = 5


@st.composite
def annotation_codes(draw, min_samples=1, max_samples=12, min_experts=1, max_experts=6):
    """Codes (n_samples, n_experts) in -1 ... n_classes - 1, where -1 is missing; returned with n_classes."""
    n_classes = draw(st.integers(2, MAX_CLASSES))
    shape = (
        draw(st.integers(min_samples, max_samples)),
        draw(st.integers(min_experts, max_experts)),
    )
    return draw(hnp.arrays(np.int64, shape, elements=st.integers(-1, n_classes - 1))), n_classes


def permutations(n):
    """Orders of n things, as index arrays."""
    return st.permutations(range(n)).map(lambda order: np.array(order, dtype=np.intp))


@st.composite
def label_sets(draw, n_classes):
    """Sorted arrays of `n_classes` distinct labels: integers from 0 up, strings, or fractions."""
    kinds = [
        st.integers(0, 10**6),
        st.text("abcXYZ 01", min_size=1, max_size=4),
        st.integers(0, 1000).map(lambda i: i + 0.5),
    ]
    elements = draw(st.sampled_from(kinds))
    return np.array(sorted(draw(st.sets(elements, min_size=n_classes, max_size=n_classes))))


@st.composite
def vote_counts(draw, min_samples=1, max_samples=12, max_votes=6):
    """Counts (n_samples, n_classes) of votes with at least one vote; rows may be zero."""
    shape = (draw(st.integers(min_samples, max_samples)), draw(st.integers(2, MAX_CLASSES)))
    counts = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, max_votes)))
    return counts if counts.any() else counts + 1


@st.composite
def gate_problems(draw, max_items=8, max_groups=3, max_humans=4):
    """`log_gate`, `selection` and `log_likelihood` of a two-level mixture, the classifier last in both levels."""
    n_items, n_groups, n_humans = (draw(st.integers(1, high)) for high in (max_items, max_groups, max_humans))
    finite = st.floats(-6, 6)
    log_gate = draw(hnp.arrays(float, (n_items, n_groups + 1), elements=finite))
    log_gate = log_gate - np.logaddexp.reduce(log_gate, axis=1, keepdims=True)
    log_likelihood = -np.abs(draw(hnp.arrays(float, (n_items, n_humans + 1), elements=finite)))
    weights = draw(hnp.arrays(float, (n_groups, n_humans), elements=st.sampled_from([0.0, 0.2, 1.0])))
    weights[np.arange(n_groups), draw(hnp.arrays(int, n_groups, elements=st.integers(0, n_humans - 1)))] = 1.0
    selection = np.zeros((n_groups + 1, n_humans + 1))
    selection[:-1, :-1] = weights / weights.sum(axis=1, keepdims=True)
    selection[-1, -1] = 1.0
    return log_gate, selection, log_likelihood


@st.composite
def share_bounds(draw, n):
    """Bounds (lower, upper) of n shares around a common distribution, so that they can be met."""
    centre = np.array(draw(st.lists(st.integers(1, 6), min_size=n, max_size=n)), dtype=float)
    centre /= centre.sum()
    widths = draw(hnp.arrays(float, (2, n), elements=st.sampled_from([0.0, 0.05, 1.0])))
    return np.maximum(centre - widths[0], 0.0), np.minimum(centre + widths[1], 1.0)


class VoteModel(NamedTuple):
    """Votes of items for a few classes, what K behaviours think of them, and the concentration of the mixtures."""

    log_f: np.ndarray  # (n, D, K)
    votes: np.ndarray  # (n, D)
    alpha: np.ndarray  # (K,)


@st.composite
def vote_models(draw, real_votes=False):
    """Small `VoteModel`; rows of votes may be zero, behaviours may be alike or exclude one another."""
    n, n_slots, n_components = (draw(st.integers(1, high)) for high in (5, 3, 3))
    shape = (n, n_slots, n_components)
    log_f = draw(hnp.arrays(np.float64, shape, elements=st.floats(-30, -1e-3)))
    whole = not real_votes or draw(st.booleans())
    elements = st.integers(0, 4) if whole else st.floats(0, 4).map(lambda v: v if v > 1e-3 else 0.0)
    votes = draw(hnp.arrays(np.float64, (n, n_slots), elements=elements))
    alpha = draw(hnp.arrays(np.float64, n_components, elements=st.floats(0.1, 50)))
    return VoteModel(log_f, votes if votes.any() else votes + 1, alpha)


@st.composite
def points(draw, min_points=3, max_points=12):
    """Points (n, D) in a few dimensions; some may be the same."""
    shape = (draw(st.integers(min_points, max_points)), draw(st.integers(1, 3)))
    return draw(hnp.arrays(float, shape, elements=st.floats(-100, 100)))


class AnswerProblem(NamedTuple):
    """Items that some experts did not label: gate, imitations of the experts, answers and truth."""

    log_gate: np.ndarray  # (n, M + 1), the classifier last
    f: np.ndarray  # (n, M, C)
    codes: np.ndarray  # (n, M), -1 missing
    y_codes: np.ndarray  # (n,)
    classifier_proba: np.ndarray  # (n, C)
    smoothing: float


@st.composite
def answer_problems(draw, max_items=5):
    """Small `AnswerProblem`."""
    n, n_experts, n_classes = draw(st.integers(1, max_items)), draw(st.integers(1, 3)), draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sharpness = draw(st.sampled_from([0.3, 1.0, 5.0]))
    proba = rng.dirichlet(np.full(n_classes, 1 / sharpness), size=(n, n_experts + 1)) + 1e-9
    proba /= proba.sum(-1, keepdims=True)
    return AnswerProblem(
        np.log(rng.dirichlet(np.ones(n_experts + 1), size=n)),
        proba[:, :-1],
        rng.integers(-1, n_classes, size=(n, n_experts)),
        rng.integers(n_classes, size=n),
        proba[:, -1],
        draw(st.sampled_from([0.001, 0.2])),
    )
