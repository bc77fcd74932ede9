import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from sklearn_l2d._numerics._shares import (
    calibrate_offsets,
    check_share_bounds,
    check_share_sums,
    nearest_target_shares,
    project_onto_shares,
    selection_weights,
)


def random_log_q(seed, n_rows, n_columns, spread=1.5):
    return np.random.default_rng(seed).normal(scale=spread, size=(n_rows, n_columns))


def slsqp_projection(log_q, lower, upper, weight):
    """The primal problem, solved without any use of its dual."""
    p = np.exp(log_q - log_q.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    shape = p.shape

    pinned, loose = np.flatnonzero(lower == upper), np.flatnonzero(lower < upper)
    if not loose.size:
        pinned = pinned[:-1]  # the last share follows from the others

    def shares(v, columns):
        return (weight @ v.reshape(shape))[columns]

    result = minimize(
        lambda v: weight @ (v.reshape(shape) * np.log(v.reshape(shape) / p)).sum(axis=1),
        p.ravel(),
        jac=lambda v: (weight[:, None] * (np.log(v.reshape(shape) / p) + 1)).ravel(),
        bounds=[(1e-12, 1)] * p.size,
        constraints=[
            {"type": "eq", "fun": lambda v: v.reshape(shape).sum(axis=1) - 1},
            {"type": "eq", "fun": lambda v: shares(v, pinned) - lower[pinned]},
            {"type": "ineq", "fun": lambda v: shares(v, loose) - lower[loose]},
            {"type": "ineq", "fun": lambda v: upper[loose] - shares(v, loose)},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert result.success
    return result.x.reshape(shape)


BOUNDS = {
    "one upper": ([0, 0, 0], [0.2, 1, 1]),
    "one lower": ([0, 0, 0.6], [1, 1, 1]),
    "pinned": ([0, 0, 0.5], [1, 1, 0.5]),
    "balanced": ([0.3, 0.3, 0.4], [0.3, 0.3, 0.4]),
    "mixed": ([0.1, 0, 0.5], [0.15, 1, 0.7]),
}


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_the_primal_solution(bounds, seed):
    log_q = random_log_q(seed, 5, 3)
    lower, upper = map(np.array, bounds)
    weight = np.random.default_rng(seed).dirichlet(np.full(5, 5.0))
    q, dual, _, violation = project_onto_shares(log_q, lower, upper, sample_weight=weight)
    np.testing.assert_allclose(q, slsqp_projection(log_q, lower, upper, weight), atol=1e-6)
    assert violation <= 1e-8
    tilted = np.exp(log_q + dual)
    np.testing.assert_allclose(q, tilted / tilted.sum(axis=1, keepdims=True), atol=1e-12)


def test_without_bounds_only_normalises():
    log_q = random_log_q(0, 4, 3)
    q, dual, n_iter, violation = project_onto_shares(log_q, [0, 0, 0], [1, 1, 1])
    np.testing.assert_allclose(q, np.exp(log_q) / np.exp(log_q).sum(axis=1, keepdims=True))
    assert n_iter == 0
    assert violation == 0
    assert not dual.any()


def test_upper_zero_masks_and_lower_one_takes_all():
    log_q = random_log_q(1, 6, 3)
    q, dual, *_ = project_onto_shares(log_q, [0, 0, 0], [0, 1, 1])
    assert (q[:, 0] == 0).all()
    assert dual[0] == -np.inf
    np.testing.assert_allclose(project_onto_shares(log_q, [0, 0, 1], [1, 1, 1])[0], [[0, 0, 1]] * 6)


def test_far_away_columns_are_reached():
    log_q = random_log_q(2, 50, 3)
    log_q[:, 2] -= 3000.0
    q, _, _, violation = project_onto_shares(log_q, [0, 0, 0.4], [0.1, 1, 0.4])
    assert violation <= 1e-8
    np.testing.assert_allclose(q.mean(axis=0), [0.1, 0.5, 0.4], atol=1e-7)


def test_upper_bounds_that_add_up_to_one_are_exact():
    q, *_ = project_onto_shares(random_log_q(3, 100, 3, 4.0), [0, 0, 0], [0.39, 0.39, 0.22])
    np.testing.assert_allclose(q.mean(axis=0), [0.39, 0.39, 0.22], atol=1e-8)


def test_warm_start_takes_fewer_steps_and_changes_nothing():
    log_q = random_log_q(4, 200, 6)
    bounds = np.full(6, 1 / 6)
    q, dual, cold, _ = project_onto_shares(log_q, bounds, bounds)
    again, _, warm, _ = project_onto_shares(log_q + 1e-6, bounds, bounds, dual=dual)
    assert warm == 0 < cold
    np.testing.assert_allclose(again, q, atol=1e-7)


def test_large_problem_starts_from_a_subset():
    log_q = random_log_q(5, 60_000, 10, 3.0)
    bounds = np.full(10, 0.1)
    q, _, n_iter, violation = project_onto_shares(log_q, bounds, bounds)
    assert violation <= 1e-8
    assert n_iter <= 4
    np.testing.assert_allclose(q.mean(axis=0), bounds, atol=1e-8)


def test_rows_that_cannot_reach_a_column_keep_out_of_it():
    log_q = random_log_q(6, 40, 3)
    log_q[:20, 0] = -np.inf
    q, _, _, violation = project_onto_shares(log_q, [0.45, 0, 0], [1, 1, 1])
    assert (q[:20, 0] == 0).all()
    assert violation <= 1e-8


def test_a_row_without_a_column_is_named():
    log_q = random_log_q(7, 4, 2)
    log_q[2, 1] = -np.inf
    with pytest.raises(ValueError, match="row 2"):
        project_onto_shares(log_q, [0, 0], [0, 1])


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0, 0, 0], [0.39, 0.39, 0.2], "upper share bounds add up to 0.98"),
        ([0.5, 0.4, 0.3], [1, 1, 1], "lower share bounds add up to 1.2"),
        ([0.5, 0, 0], [0.4, 1, 1], "'ann' exceeds"),
        ([0, -0.1, 0], [1, 1, 1], r"'bob' are \(-0.1, 1\)"),
        ([0, 0, 0], [1, 1, np.nan], "'eve'"),
    ],
)
def test_contradictory_bounds_are_refused(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        check_share_sums(lower, upper, ["ann", "bob", "eve"])


def test_the_infeasible_dual_is_refused():
    with pytest.raises(ValueError, match=r"Raise them by 0\.02"):
        project_onto_shares(random_log_q(8, 10, 3), [0, 0, 0], [0.39, 0.39, 0.2])


SUPPORT = np.array([[1, 1, 0], [0, 0, 1]])


def test_support_decides_feasibility():
    check_share_bounds([0.3, 0.3, 0], [1, 1, 1], SUPPORT, target_upper=[0.6, 1])
    with pytest.raises(ValueError) as error:
        check_share_bounds(
            [0.3, 0.3, 0],
            [1, 1, 1],
            SUPPORT,
            ["ann", "bob", "eve"],
            target_upper=[0.5, 1],
            target_names=["g", "clf"],
        )
    message = str(error.value)
    assert all(f"lower bound 0.3 of {name!r}" in message for name in ("ann", "bob"))
    assert "upper bound 0.5 of target 'g'" in message
    assert "by at least 0.1" in message
    assert "eve" not in message


def test_nearest_target_shares():
    shares = nearest_target_shares([0.8, 0.2], [0, 0, 0], [0.25, 0.3, 1], SUPPORT)
    np.testing.assert_allclose(shares, [0.55, 0.45], atol=1e-9)
    kept = nearest_target_shares([0.4, 0.6], [0, 0, 0], [0.25, 0.3, 1], SUPPORT)
    np.testing.assert_allclose(kept, [0.4, 0.6], atol=1e-9)


def test_selection_weights_without_bounds_are_the_memberships():
    omega = np.array([[2.0, 1.0, 1.0], [0.0, 0.0, 3.0]])
    np.testing.assert_allclose(selection_weights(omega, [0.4, 0.6]), [[0.5, 0.25, 0.25], [0, 0, 1]])
    loose = selection_weights(omega, [0.4, 0.6], [0, 0, 0], [0.9, 0.9, 0.9])
    np.testing.assert_allclose(loose, [[0.5, 0.25, 0.25], [0, 0, 1]])


def test_selection_weights_serve_the_bounds():
    rng = np.random.default_rng(0)
    omega, shares = rng.random((3, 5)), np.array([0.2, 0.3, 0.5])
    selection = selection_weights(omega, shares, [0, 0.3, 0, 0, 0], [0.05, 1, 1, 1, 1])
    served = shares @ selection
    np.testing.assert_allclose(served[[0, 1]], [0.05, 0.3], atol=1e-8)
    np.testing.assert_allclose(selection.sum(axis=1), 1)
    # The tilt of an expert is the same in every target.
    tilt = selection / omega
    np.testing.assert_allclose(tilt[:, 0] / tilt[:, 2], np.full(3, tilt[0, 0] / tilt[0, 2]), rtol=1e-8)


def test_selection_weights_refuse_what_cannot_be():
    with pytest.raises(ValueError, match="target 1 has no member"):
        selection_weights([[1, 0], [0, 0]], [0.5, 0.5])
    with pytest.raises(ValueError, match="cannot be met together"):
        selection_weights([[1, 0], [0, 1]], [0.5, 0.5], [0, 0], [0.2, 1])


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


def test_offsets_lie_half_way_between_rows():
    logits = np.column_stack([np.zeros(4), [1.0, 2.0, 5.0, 9.0]])
    both, _ = calibrate_offsets(logits, [0.5, 0.5], [0.5, 0.5])
    assert both[1] - both[0] == pytest.approx(-3.5)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_logits_that_are_no_numbers_are_refused(wrong):
    log_q = random_log_q(0, 40, 3)
    log_q[7, 1] = wrong
    with pytest.raises(ValueError, match="log_q: 1 of 40 rows, first row 7, hold NaN or infinity"):
        project_onto_shares(log_q, [0, 0.5, 0], [1, 1, 0.2])
    with pytest.raises(ValueError, match="logits: 1 of 40 rows"):
        calibrate_offsets(log_q, [0, 0.5, 0], [1, 1, 0.2])


@pytest.mark.parametrize("scale", [1e6, 1e20, 1e300])
def test_sharp_rows_of_any_size_are_softened_in_a_few_rounds(scale):
    q, _, _, violation = project_onto_shares(scale * random_log_q(1, 40, 3), [0.5, 0, 0], [0.5, 1, 0.2])
    assert np.isfinite(q).all()
    assert violation < 0.05
