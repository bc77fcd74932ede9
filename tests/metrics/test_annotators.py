import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln

from sklearn_l2d import AnnotatorLDA
from sklearn_l2d.metrics import annotation_perplexity, consensus_agreement, membership_dissimilarity


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def distributions(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), shape[:-1])


def enumerated(counts, proba, alpha):
    """Perplexity by adding up all assignments of votes to behaviours, each with its Dirichlet-multinomial weight."""
    log_total = 0.0
    for votes, f in zip(counts, proba, strict=True):
        labels = np.repeat(np.arange(len(votes)), votes)
        total = 0.0
        for assigned in itertools.product(range(len(alpha)), repeat=len(labels)):
            n = np.bincount(assigned, minlength=len(alpha))
            weight = (
                gammaln(alpha.sum()) - gammaln(alpha.sum() + len(labels)) + (gammaln(alpha + n) - gammaln(alpha)).sum()
            )
            total += np.exp(weight) * np.prod([f[k, c] for k, c in zip(assigned, labels, strict=True)])
        log_total += np.log(total)
    return np.exp(-log_total / counts.sum())


class TestAnnotationPerplexity:
    def test_equals_the_sum_over_all_assignments(self, rng):
        counts = np.array([[2, 0, 1, 0], [0, 0, 0, 0], [0, 3, 0, 1]])
        proba, alpha = distributions(rng, 3, 3, 4), np.array([0.5, 2.0, 7.0])
        expected = enumerated(counts, proba, alpha)
        assert_allclose(annotation_perplexity(counts, proba, alpha, method="exact"), expected, rtol=1e-12)
        assert_allclose(annotation_perplexity(counts, proba, alpha), expected, rtol=1e-12)
        assert_allclose(annotation_perplexity(counts, proba, alpha, method="sobol"), expected, rtol=0.002)

    def test_one_behaviour_is_the_geometric_mean(self, rng):
        counts, proba = rng.integers(0, 4, (6, 3)), distributions(rng, 6, 1, 3)
        expected = np.exp(-(counts * np.log(proba[:, 0])).sum() / counts.sum())
        assert_allclose(annotation_perplexity(counts, proba, 3.0), expected)

    def test_zero_probability(self):
        half = [[[1.0, 0.0], [0.0, 1.0]]]
        assert_allclose(annotation_perplexity([[1, 0]], half, [1.0, 3.0]), 4.0)  # 1 / E[u_0]
        assert annotation_perplexity([[1, 1]], [[[1.0, 0.0], [1.0, 0.0]]], 1.0) == np.inf
        never_voted = [[[0.0, 1.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]]
        for method in ("exact", "sobol"):
            assert_allclose(annotation_perplexity([[0, 2], [1, 1]], never_voted, 1.0, method=method), np.sqrt(2))

    def test_fractional_votes(self, rng):
        proba = distributions(rng, 1, 1, 2)
        weighted = annotation_perplexity([[0.5, 1.5]], proba, 1.0)
        assert_allclose(np.log(weighted), -(np.log(proba[0, 0]) @ [0.25, 0.75]))
        with pytest.raises(ValueError, match="whole numbers"):
            annotation_perplexity([[0.5, 1.5]], proba, 1.0, method="exact")

    def test_auto_leaves_the_exact_sum_where_it_explodes(self, rng):
        counts, proba = np.array([[40, 60]]), distributions(rng, 1, 4, 2)  # 176,851 terms
        auto = annotation_perplexity(counts, proba, 2.0)
        assert auto == annotation_perplexity(counts, proba, 2.0, method="sobol")

    def test_agrees_with_the_estimator(self, rng):
        X, counts = (
            rng.normal(size=(20, 3)),
            rng.integers(0, 3, (20, 3)) + np.eye(3, dtype=int)[rng.integers(3, size=20)],
        )
        lda = AnnotatorLDA(2, alpha=3.0, max_epochs=2, n_anchor_epochs=1, n_consensus_epochs=1, random_state=0)
        lda.fit(X, counts)
        for method in ("exact", "sobol"):
            found = annotation_perplexity(counts, lda.predict_annotation_proba(X), lda.alpha_, method=method)
            assert_allclose(found, lda.perplexity(X, counts, method=method), rtol=1e-9)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"method": "elbo"}, "method='elbo' is unknown"),
            ({"counts": [0, 1]}, "counts must be 2-D"),
            ({"counts": [[0, 0]]}, "no votes"),
            ({"counts": [[1, -1]]}, "negative"),
            ({"counts": [[1, 1, 1]]}, "with 3 classes"),
            ({"counts": [[1, 1], [1, 1]]}, "inconsistent numbers of samples"),
            ({"proba": [[0.5, 0.5]]}, "proba must have shape"),
            ({"proba": [[[-1.0, 2.0]]]}, "not logits"),
            ({"proba": [[[0.5, 0.6]]]}, "not logits"),
            ({"proba": [[[np.nan, 0.5]]]}, "NaN"),
            ({"alpha": 0.0}, "alpha"),
            ({"alpha": [1.0, 1.0]}, "alpha has shape"),
        ],
    )
    def test_bad_input(self, change, message):
        arguments = {"counts": [[1, 1]], "proba": [[[0.5, 0.5]]], "alpha": 1.0} | change
        with pytest.raises(ValueError, match=message):
            annotation_perplexity(**arguments)


class TestMembershipDissimilarity:
    def test_equals_the_mean_over_pairs(self, rng):
        membership = distributions(rng, 7, 3)
        pairs = list(itertools.combinations(membership, 2))
        cosines = [a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in pairs]
        assert_allclose(membership_dissimilarity(membership), 1 - np.mean(cosines), rtol=1e-12)
        assert_allclose(membership_dissimilarity(pd.DataFrame(membership)), 1 - np.mean(cosines), rtol=1e-12)

    def test_limits(self):
        assert membership_dissimilarity(np.eye(4)) == 1
        assert_allclose(membership_dissimilarity(np.full((50, 3), 1 / 3)), 0, atol=1e-14)

    @pytest.mark.parametrize(
        ("membership", "message"),
        [
            ([[0.5, 0.5]], "at least two experts"),
            ([[0.5, 0.5], [0.0, 0.0]], r"rows \[1\]"),
            ([[1.5, -0.5], [1.0, 0.0]], r"rows \[0\]"),
            ([[np.nan, 0.5], [1.0, 0.0]], "NaN"),
        ],
    )
    def test_bad_input(self, membership, message):
        with pytest.raises(ValueError, match=message):
            membership_dissimilarity(membership)


class TestConsensusAgreement:
    def test_equals_a_loop(self, rng):
        proba, codes = distributions(rng, 30, 4), rng.integers(-1, 4, (30, 5))
        expected = [np.mean([proba[i, c] for i, c in enumerate(column) if c >= 0]) for column in codes.T]
        assert_allclose(consensus_agreement(codes, proba), expected)

    def test_names_and_missing_labels(self):
        annotations = pd.DataFrame({"ann": ["cat", None], "bob": ["dog", "cat"], "eve": [None, None]})
        found = consensus_agreement(annotations, [[0.9, 0.1], [0.2, 0.8]], classes=["cat", "dog"])
        assert_allclose(found, [0.9, 0.15, np.nan])
        assert_allclose(consensus_agreement([[9], [1]], [[1, 0], [0, 1]], missing_label=9), [1])

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"annotations": [[2, 3]]}, r"labels \[2, 3\]"),
            ({"annotations": [[0], [1]]}, "inconsistent numbers of samples"),
            ({"proba": [[[0.5, 0.5]]]}, r"\(n_samples, n_classes\)"),
            ({"proba": [[3.0, -1.0]]}, "not logits"),
            ({"classes": [0, 1, 2]}, "with 3 classes"),
        ],
    )
    def test_bad_input(self, change, message):
        with pytest.raises(ValueError, match=message):
            consensus_agreement(**({"annotations": [[0]], "proba": [[0.5, 0.5]]} | change))


def test_an_answer_that_is_no_class_has_no_probability():
    proba = [[0.75, 0.25], [0.5, 0.5]]
    with pytest.warns(UserWarning, match=r"1 of 4 answers, by \[1\].*\[5\]: they count as .* cannot be right"):
        assert_allclose(consensus_agreement([[0, 1], [1, 5]], proba), [0.625, 0.125])
    with pytest.raises(ValueError, match="not in classes"):
        consensus_agreement([["cat", "dog"], ["dog", "dog"]], proba)
