"""Who may learn from what in the worlds of the benchmark."""

import os

import numpy as np
import pytest

from sklearn_l2d.benchmark._worlds import SETS


@pytest.fixture(scope="module")
def world():
    return SETS["digits, 6 experts"].build(0)


def test_rows_have_one_role(world):
    assert sorted(np.concatenate([world.archive, world.pool, world.test])) == list(range(len(world.y)))
    assert np.isin(world.known, world.archive).all()


@pytest.mark.parametrize("same_items", [True, False])
def test_experts_label_as_many_items_as_asked(world, same_items):
    labels = world.identified(50, same_items)
    assert ((labels >= 0).sum(0) == 50).all()
    assert (labels >= 0).any(1).sum() == 50 or not same_items
    seen = labels >= 0
    assert (labels[seen] == world.annotations[world.pool][seen]).all()


def test_training_rows_hold_nothing_of_the_test(world):
    data = world.labelled(world.identified(50, same_items=True), with_known=True)
    assert len(data["X"]) == 50 + len(world.known)
    test = {row.tobytes() for row in world.X[world.test]}
    known = {row.tobytes() for row in np.vstack([data["X"], data["X_unlabeled"]])}
    assert len(known & test) <= 5  # some digits were drawn twice alike
    assert (data["annotations"][50:] == -1).all()


@pytest.mark.skipif("SKLEARN_L2D_DATA" not in os.environ, reason="SKLEARN_L2D_DATA names no folder of real data")
@pytest.mark.parametrize("name", ["cue_conflict", "music_genre", "recidivism_compas"])
def test_real_people_are_calibrated_and_judged_on_rows_that_trained_nothing(name):
    world = SETS[name].build(0)
    assert not np.intersect1d(world.archive, world.test).size
    assert sorted(np.concatenate([world.pool, world.unlabeled])) == sorted(world.archive)
    labels = world.identified(25, same_items=False)
    data = world.labelled(labels)
    trained = world.pool[(labels >= 0).any(1)]
    assert not np.intersect1d(trained, np.concatenate([world.unlabeled, world.test])).size
    np.testing.assert_array_equal(data["X"], world.X[trained])
    np.testing.assert_array_equal(data["X_unlabeled"], world.X[world.unlabeled])
    assert (data["annotations"] >= 0).sum(0).min() >= 20
    centre, other = (abs(world.X[rows].mean(0)).max() for rows in (world.archive, world.test))
    assert centre < 1e-5 < 1e-3 < other  # the test rows have not scaled anything
