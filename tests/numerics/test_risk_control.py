"""The bound on the error of whoever stops asking."""

import numpy as np
import pytest

from sklearn_l2d._numerics._risk_control import confidence_bound, n_items_needed


def steps(n, rng):
    """Confidences after 0 to 3 answers, which rise, and errors; overconfident by design."""
    confidence = np.sort(rng.uniform(0.5, 1.0, size=(n, 4)), axis=1)
    wrong = rng.random((n, 4)) < 1.3 * (1 - confidence)
    confidence[np.arange(4) > rng.integers(1, 4, size=(n, 1))] = np.nan
    return confidence, wrong


def error_at(confidence, wrong, threshold):
    stops = (confidence >= threshold) & ~np.isnan(confidence)
    last = (~np.isnan(confidence)).sum(1) - 1
    stop = np.where(stops.any(1), stops.argmax(1), last)
    return wrong[np.arange(len(wrong)), stop].mean()


@pytest.mark.parametrize(("n", "error", "level"), [(60, 0.3, 0.9), (400, 0.25, 0.8), (400, 0.4, 0.95)])
def test_the_error_exceeds_its_bound_as_rarely_as_promised(n, error, level):
    rng = np.random.default_rng(0)
    future = steps(200_000, rng)
    exceeded, found = 0, 0
    for _ in range(200):
        threshold, _ = confidence_bound(*steps(n, rng), error, level)
        if threshold is not None:
            found += 1
            exceeded += error_at(*future, threshold) > error
    assert found > 0
    allowed = 1 - level
    assert exceeded / 200 <= allowed + 3 * np.sqrt(allowed * level / 200)


def test_a_lower_bound_takes_more_answers():
    held = steps(500, np.random.default_rng(1))
    thresholds = [confidence_bound(*held, error, 0.9)[0] for error in (0.3, 0.4, 0.5)]
    assert thresholds == sorted(thresholds, reverse=True)
    assert confidence_bound(*held, 0.01, 0.9)[0] is None


def test_how_many_items_are_needed():
    assert n_items_needed(0.05, 0.9) == 45  # .95 ** 45 = .0994, .95 ** 44 = .1047
    confidence, right = np.full((45, 1), 0.9), np.zeros((45, 1), dtype=bool)
    assert confidence_bound(confidence, right, 0.05, 0.9)[0] <= 0.9
    assert confidence_bound(confidence[:44], right[:44], 0.05, 0.9)[0] is None
    one = right.copy()
    one[3] = True
    assert confidence_bound(confidence, one, 0.05, 0.9) == (None, 1)
