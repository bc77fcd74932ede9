"""The noise model, its published figures, and what the seed promises."""

import tracemalloc

import numpy as np
import pytest
from scipy.stats import truncnorm

from sklearn_l2d.datasets import sample_identified, simulate_annotations


def blobs(n, d=6, n_classes=10, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.integers(n_classes, size=n)


def effective_wrong_classes(X, y, normalize):
    """Perplexity of the mistaken class, averaged over items, estimated from 3,000 experts who only err."""
    crowd = simulate_annotations(
        X, y, rates=np.ones(3000), sd=0, share_confusion=True, normalize=normalize, random_state=1
    )
    share = (crowd.annotations[:, :, None] == crowd.classes).mean(axis=1)
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    return np.exp(-(share * logs).sum(axis=1)).mean()


@pytest.mark.parametrize(
    ("rate", "published"),
    [(0.05, 0.101), (0.1, 0.129), (0.15, 0.164), (0.2, 0.206), (0.25, 0.252), (0.35, 0.350)],
)
def test_truncation_moves_the_mean_as_published(rate, published):
    X, y = blobs(40_000, d=2)
    realized = simulate_annotations(X, y, rates=np.repeat(rate, 10), random_state=0).realized_rates
    sampling = np.sqrt(published * (1 - published) / (10 * len(y)))
    assert realized.mean() == pytest.approx(published, abs=0.0007 + 3 * sampling)
    exact = truncnorm.mean(-rate / 0.1, (1 - rate) / 0.1, loc=rate, scale=0.1)
    assert realized.mean() == pytest.approx(exact, abs=4 * sampling)


def test_mistakes_concentrate_on_few_classes_as_published():
    # Published: unit length 6.5 of nine wrong classes, 20 standardised columns 2.1, 3072 of them 1.03.
    X, y = blobs(60, d=20)
    assert effective_wrong_classes(X, y, "l2") == pytest.approx(6.5, abs=0.5)
    assert effective_wrong_classes(X, y, "standard") == pytest.approx(2.1, abs=0.4)
    assert effective_wrong_classes(*blobs(60, d=3072), "standard") == pytest.approx(1.03, abs=0.06)


def test_mistaken_class_follows_the_softmax_of_the_projection():
    """One input repeated: label shares give softmax odds, and doubling the input squares them."""
    X, y = np.ones((2, 1)), np.array([2, 2])
    X[1] = 2
    experts = {"rates": np.ones(8000), "sd": 0, "share_confusion": True}
    labels = simulate_annotations(X, y, classes=[0, 1, 2], random_state=3, **experts).annotations
    share = np.array([(row[:, None] == [0, 1]).mean(axis=0) for row in labels])
    odds = share[:, 0] / share[:, 1]
    assert odds[1] == pytest.approx(odds[0] ** 2, rel=0.1)
    assert odds[0] != pytest.approx(1, rel=0.1)


def test_annotations_keep_labels_and_never_mistake_for_the_truth():
    X, y = blobs(300, n_classes=3)
    names = np.array(["cat", "dog", "owl"])[y]
    crowd = simulate_annotations(X, names, rates=[0, 1], sd=0, random_state=0)
    assert (crowd.annotations[:, 0] == names).all()
    assert (crowd.annotations[:, 1] != names).all()
    assert set(crowd.annotations[:, 1]) == {"cat", "dog", "owl"}
    np.testing.assert_array_equal(crowd.realized_rates, [0, 1])


@pytest.mark.parametrize("noise", ["class", "uniform"])
def test_instance_independent_noise_has_the_exact_rate(noise):
    X, y = blobs(40_000, d=1)
    crowd = simulate_annotations(X, y, rates=[0.05, 0.3], noise=noise, random_state=0)
    np.testing.assert_allclose(crowd.realized_rates, [0.05, 0.3], atol=4 * np.sqrt(0.3 * 0.7 / len(y)))


def test_uniform_noise_spreads_evenly_and_class_noise_does_not():
    y = np.zeros(30_000, dtype=int)
    shares = {}
    for noise in ("uniform", "class"):
        crowd = simulate_annotations(y, y, rates=[1.0], noise=noise, classes=np.arange(5), random_state=0)
        shares[noise] = np.bincount(crowd.annotations[:, 0], minlength=5) / len(y)
    np.testing.assert_allclose(shares["uniform"], [0, 0.25, 0.25, 0.25, 0.25], atol=0.01)
    assert shares["class"][0] == 0
    assert np.ptp(shares["class"][1:]) > 0.05


def test_rates_per_class():
    X, y = blobs(20_000, n_classes=2, d=1)
    crowd = simulate_annotations(X, y, rates=[[0.0, 0.5]], sd=0, random_state=0)
    wrong = crowd.annotations[:, 0] != y
    assert not wrong[y == 0].any()
    assert wrong[y == 1].mean() == pytest.approx(0.5, abs=0.02)


def test_shared_confusion_makes_experts_err_alike():
    X, y = blobs(2000, d=64)
    crowd = simulate_annotations(
        X,
        y,
        rates=np.ones(4),
        sd=0,
        share_confusion=["a", "b", "a", "b"],
        normalize="standard",
        random_state=0,
    )
    agree = (crowd.annotations[:, :, None] == crowd.annotations[:, None]).mean(axis=0)
    assert agree[0, 2] > 0.7
    assert agree[1, 3] > 0.7
    assert agree[0, 1] < 0.25  # two of nine wrong classes coincide about once in nine


def test_images_are_flattened():
    X, y = blobs(50, d=12)
    flat = simulate_annotations(X, y, rates=[0.5], random_state=0).annotations
    image = simulate_annotations(X.reshape(50, 2, 2, 3), y, rates=[0.5], random_state=0).annotations
    np.testing.assert_array_equal(flat, image)


def test_same_seed_same_labels_whoever_else_is_on_the_roster():
    X, y = blobs(200)
    few = simulate_annotations(X, y, rates=[0.3, 0.3], random_state=7).annotations
    many = simulate_annotations(X, y, rates=[0.3, 0.3, 0.1], random_state=7).annotations
    np.testing.assert_array_equal(few, many[:, :2])
    assert (few[:, 0] != few[:, 1]).any()
    other = simulate_annotations(X, y, rates=[0.3, 0.3], random_state=8).annotations
    assert (few != other).any()


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_are_seeds_too(make):
    X, y = blobs(100)
    first, again = (simulate_annotations(X, y, rates=[0.4], random_state=make(5)).annotations for _ in range(2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("random_state", [None, 0])
def test_global_generator_and_inputs_stay_untouched(random_state):
    X, y = blobs(100)
    X.flags.writeable = y.flags.writeable = False
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    crowd = simulate_annotations(X, y, rates=[0.4], normalize="standard", random_state=random_state)
    sample_identified(crowd.annotations, 5, random_state=random_state)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_memory_stays_below_one_table_per_expert():
    """60,000 items, 50 classes, 8 experts: a table of 24 MB each would make 192 MB."""
    X, y = blobs(60_000, d=4, n_classes=50)
    tracemalloc.start()
    simulate_annotations(X, y, rates=np.full(8, 0.2), random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rates": [5]}, "not percentages"),
        ({"rates": [np.nan]}, "rates must lie"),
        ({"rates": np.zeros((2, 3))}, "rates has shape"),
        ({"rates": []}, "rates has shape"),
        ({"sd": -1}, "sd="),
        ({"noise": "other"}, "noise="),
        ({"normalize": "other"}, "normalize="),
        ({"share_confusion": [0, 1]}, "share_confusion has 2"),
        ({"classes": [0, 1]}, "classes lacks"),
        ({"y": np.zeros(30)}, "single class"),
        ({"y": np.arange(29)}, "inconsistent numbers of samples"),
        ({"X": np.full((30, 6), np.inf)}, "infinity"),
    ],
)
def test_bad_input_is_named(change, message):
    X, y = blobs(30)
    with pytest.raises(ValueError, match=message):
        simulate_annotations(**({"X": X, "y": y, "rates": [0.2]} | change))


def test_sampled_items_differ_per_expert_unless_asked():
    full = np.tile(np.arange(200)[:, None], 4)
    kept = sample_identified(full, [5, 10, 20, 200], random_state=0)
    np.testing.assert_array_equal((kept >= 0).sum(axis=0), [5, 10, 20, 200])
    assert ((kept == full) | (kept == -1)).all()
    own = sample_identified(full, 50, random_state=0) >= 0
    assert 0.1 < (own[:, 0] & own[:, 1]).sum() / 50 < 0.45  # a quarter by chance
    same = sample_identified(full, 50, same_items=True, random_state=0) >= 0
    assert (same == same[:, :1]).all()
    assert same[:, 0].sum() == 50


def test_missing_entries_are_never_drawn():
    partial = np.array([[0, -1], [1, 1], [-1, 0], [1, 1]])
    np.testing.assert_array_equal(sample_identified(partial, [3, 3], random_state=0), partial)
    both = sample_identified(partial, 2, same_items=True, random_state=0)
    np.testing.assert_array_equal(both, [[-1, -1], [1, 1], [-1, -1], [1, 1]])
    with pytest.raises(ValueError, match="only 2 items that every expert"):
        sample_identified(partial, 3, same_items=True)


@pytest.mark.parametrize(
    ("dtype", "marker"), [(float, np.nan), (object, None), (object, "none"), (int, -7), ("U3", "?")]
)
def test_other_markers(dtype, marker):
    full = np.ones((9, 2)).astype(dtype)
    kept = sample_identified(full, 4, missing_label=marker, random_state=0)
    assert kept.dtype == full.dtype
    np.testing.assert_array_equal((kept == full).sum(axis=0), [4, 4])
    np.testing.assert_array_equal(sample_identified(kept, 4, missing_label=marker), kept)


@pytest.mark.parametrize(
    ("annotations", "options", "message"),
    [
        (np.ones(5), {"n_per_expert": 1}, "one column per expert"),
        (np.ones((5, 2)), {"n_per_expert": 6}, "only 5 labels of expert 0"),
        (np.ones((5, 2)), {"n_per_expert": 1.5}, "integers"),
        (np.ones((5, 2)), {"n_per_expert": [1, 2], "same_items": True}, "one number"),
        (np.ones((5, 2), dtype=int), {"n_per_expert": 1, "missing_label": np.nan}, "does not fit"),
        (np.ones((5, 2), dtype=int), {"n_per_expert": 1, "missing_label": None}, "does not fit"),
        (np.ones((5, 2), dtype=np.uint8), {"n_per_expert": 1}, "does not fit"),
        (np.full((5, 2), "a"), {"n_per_expert": 1, "missing_label": "none"}, "does not fit"),
    ],
)
def test_sampling_refuses(annotations, options, message):
    with pytest.raises(ValueError, match=message):
        sample_identified(annotations, **options)
