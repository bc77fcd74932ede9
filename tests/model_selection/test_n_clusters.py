"""Rules for the number of clusters, on made-up results and in a search."""

from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d import AnnotatorLDA
from sklearn_l2d.model_selection import lowest_perplexity, rate_of_perplexity_change


def results(perplexity, clusters, name="param_n_clusters"):
    return {name: clusters, "mean_test_score": -np.log(np.asarray(perplexity, dtype=float))}


def test_the_lowest_perplexity_with_the_fewest_clusters():
    assert lowest_perplexity(results([3.0, 2.0, 2.0, 2.5], [2, 4, 3, 5])) == 2
    assert lowest_perplexity(results([3.0, np.nan, 2.9], [2, 3, 4], "param_lda__n_clusters")) == 2


@pytest.mark.parametrize(
    ("perplexity", "clusters", "marginal", "expected"),
    [
        ([4.0, 3.0, 2.9, 2.85], [1, 2, 3, 4], None, 1),  # Eq. 47: the largest rate
        ([4.0, 3.0, 2.9, 2.85], [1, 2, 3, 4], 0.08, 2),  # a fall of .1 is 10 % of the largest, .05 is 5 %
        ([4.0, 3.0, 1.0], [1, 2, 6], None, 1),  # 1 per cluster beats 2 over 4 clusters
        ([2.9, 4.0, 3.0], [3, 1, 2], None, 2),  # rows in any order
        ([3.0, 5.0, 4.9], [1, 2, 3], None, 2),  # a rise is no gain, however large
        ([3.0, 3.0, 3.1], [1, 2, 3], None, 0),  # nothing falls
    ],
)
def test_the_rate_of_change(perplexity, clusters, marginal, expected):
    assert rate_of_perplexity_change(results(perplexity, clusters), marginal) == expected


def test_other_parameters_enter_by_their_best_score():
    found = rate_of_perplexity_change(results([4.0, 5.0, 3.5, 3.0, 2.9, 9.0], [1, 1, 2, 2, 3, 3]))
    assert found == 3


@pytest.mark.parametrize("rule", [lowest_perplexity, rate_of_perplexity_change])
def test_bad_results(rule):
    with pytest.raises(ValueError, match="n_clusters"):
        rule({"param_alpha": [1.0, 2.0], "mean_test_score": [0.0, 1.0]})
    with pytest.raises(ValueError, match="every fit failed"):
        rule({"param_n_clusters": [1, 2], "mean_test_score": [np.nan, np.nan]})


def test_a_rate_needs_two_numbers():
    with pytest.raises(ValueError, match=r"tried at \[2\] only"):
        rate_of_perplexity_change(results([2.0, 3.0], [2, 2]))


def test_they_refit_a_search():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 4, (60, 3))
    lda = AnnotatorLDA(max_epochs=2, n_consensus_epochs=1, n_anchor_epochs=1, init="random", random_state=0)
    grid = {"annotatorlda__n_clusters": [1, 2, 3]}
    for rule in (lowest_perplexity, partial(rate_of_perplexity_change, marginal=0.5)):
        search = GridSearchCV(make_pipeline(StandardScaler(), lda), grid, refit=rule, cv=KFold(2))
        search.fit(X, y)
        assert search.best_index_ == rule(search.cv_results_)
        assert search.best_estimator_[-1].n_clusters == grid["annotatorlda__n_clusters"][search.best_index_]
