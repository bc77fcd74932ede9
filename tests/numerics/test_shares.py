import numpy as np
import pytest
from scipy.optimize import linprog

from sklearn_l2d._numerics._shares import calibrate_offsets, coverage_offsets


def random_logits(seed, n_rows, n_columns):
    rng = np.random.default_rng(seed)
    return 2 * rng.normal(size=(n_rows, n_columns)) + rng.normal(size=n_columns)


def shares_of(scores):
    return np.bincount(scores.argmax(axis=1), minlength=scores.shape[1]) / len(scores)


@pytest.mark.parametrize("n_columns", [2, 3, 5, 9])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_pinned_shares_are_met_to_a_row(n_columns, seed):
    logits = random_logits(seed, 1000, n_columns)
    requested = np.random.default_rng(seed).multinomial(1000, np.full(n_columns, 1 / n_columns)) / 1000
    offsets, achieved = calibrate_offsets(logits, requested, requested)
    np.testing.assert_allclose(achieved, requested, atol=1e-12)
    np.testing.assert_allclose(shares_of(logits + offsets), achieved)


@pytest.mark.parametrize("seed", range(4))
def test_assignment_maximises_the_total_logit(seed):
    n_rows, n_columns = 30, 4
    logits = random_logits(seed, n_rows, n_columns)
    lower, upper = np.array([0, 0.2, 0.1, 0.4]), np.array([0.2, 1, 0.3, 0.4])
    offsets, achieved = calibrate_offsets(logits, lower, upper)
    assert ((lower - 1e-12 <= achieved) & (achieved <= upper + 1e-12)).all()
    columns = np.kron(np.ones(n_rows), np.eye(n_columns))
    best = linprog(
        -logits.ravel(),
        A_ub=np.vstack([columns, -columns]),
        b_ub=n_rows * np.concatenate([upper, -lower]),
        A_eq=np.kron(np.eye(n_rows), np.ones(n_columns)),
        b_eq=np.ones(n_rows),
    )
    chosen = (logits + offsets).argmax(axis=1)
    assert logits[np.arange(n_rows), chosen].sum() == pytest.approx(-best.fun)


def test_shares_within_bounds_need_no_offsets():
    logits = random_logits(0, 100, 3)
    offsets, achieved = calibrate_offsets(logits, [0, 0, 0], [1, 1, 1])
    assert not offsets.any()
    np.testing.assert_allclose(achieved, shares_of(logits))


def test_one_interval_stops_at_its_near_end():
    logits = random_logits(1, 200, 3)
    logits[:, 2] -= 1.0
    offsets, achieved = calibrate_offsets(logits, [0, 0, 0.403], [1, 1, 0.5])
    assert achieved[2] == pytest.approx(0.405)  # the first whole row inside
    assert not offsets[:2].any()


def test_masked_column_gets_nothing():
    logits = random_logits(2, 100, 3)
    offsets, achieved = calibrate_offsets(logits, [0, 0, 0], [1, 1, 0])
    assert offsets[2] == -np.inf
    assert achieved[2] == 0
    offsets, achieved = calibrate_offsets(logits, [0, 0, 1], [1, 1, 1])
    assert achieved[2] == pytest.approx(1)


def test_weighted_rows():
    logits = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [0.0, 4.0]])
    _, achieved = calibrate_offsets(logits, [0, 0.4], [1, 0.4], sample_weight=[5, 1, 2, 2])
    np.testing.assert_allclose(achieved, [0.6, 0.4])


def test_ties_are_reported():
    logits = np.zeros((10, 3))
    logits[:, 0] = 1
    _, achieved = calibrate_offsets(logits, [0.5, 0, 0.5], [0.5, 0, 0.5])
    assert sorted(achieved) == pytest.approx([0, 0, 1])
    # Two kinds of rows: any split goes along the kinds.
    logits[:4, 2] = 0.5
    for requested in ([0.5, 0.1, 0.4], [0.1, 0.3, 0.6]):
        offsets, achieved = calibrate_offsets(logits, requested, requested)
        np.testing.assert_allclose(achieved, shares_of(logits + offsets))
        assert set(np.round(achieved, 12)) <= {0, 0.4, 0.6, 1}


def test_coverage_offsets_serve_a_whole_path():
    logits = random_logits(3, 500, 4)
    coverages = [0, 0.1, 0.35, 0.5, 0.999, 1]
    offsets, achieved = coverage_offsets(logits, coverages)
    for requested, row, share in zip(coverages, offsets, achieved, strict=True):
        assert abs(share - requested) <= 0.5 / 500 + 1e-12
        assert shares_of(logits + row)[-1] == pytest.approx(share)
    single, _ = calibrate_offsets(logits, [0, 0, 0, 0.35], [1, 1, 1, 0.35])
    np.testing.assert_allclose(offsets[2], single)


def test_offsets_lie_half_way_between_rows():
    logits = np.column_stack([np.zeros(4), [1.0, 2.0, 5.0, 9.0]])
    assert coverage_offsets(logits, [0.5])[0][0].tolist() == [0, -3.5]
    both, _ = calibrate_offsets(logits, [0.5, 0.5], [0.5, 0.5])
    assert both[1] - both[0] == pytest.approx(-3.5)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("column", [0, 1, -1])
def test_any_column_can_be_set(seed, column):
    logits = random_logits(seed, 100, 3)
    offsets, achieved = coverage_offsets(logits, [0.25], column=column)
    assert shares_of(logits + offsets[0])[column] == pytest.approx(0.25) == achieved[0]
