"""Figures of `AnnotatorLDA`, each beside its simplest rivals, and its speed as ratios.

    python benchmarks/lda.py [TABLE ...] [--seeds 10] > benchmarks/results/lda.md
    python benchmarks/lda.py pairs --first-seed 100 --seeds 20  # the other draws of the pairs

The real sets are found through SKLEARN_L2D_DATA. Seeds 0 to 9 are reported; the default parameters were tuned on
seeds from 100 upwards.
"""

import time

import numpy as np
import torch
from _references import (
    cue_sessions,
    digits_roster,
    enumerated,
    gap_of,
    plain_epoch,
    slsqp_weights,
    synthetic_counts,
)
from _report import cpu_ratio, run, table, verdict
from _rivals import (
    accuracy,
    drawn_to_average,
    fit,
    halves,
    likeliest,
    linear_agreement,
    majority_agreement,
    membership,
    net_agreement,
    one_net_agreement,
)
from _suggestions import suggest
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from sklearn_l2d._encoding import sparse_counts
from sklearn_l2d._numerics._marginal_likelihood import log_marginal_draws, log_marginal_exact
from sklearn_l2d._numerics._mixture_weights import mixture_weights
from sklearn_l2d._torch._batches import Rows
from sklearn_l2d._torch._e_steps import responsibilities
from sklearn_l2d._torch._seeding import OwnRandom, own_generator
from sklearn_l2d.annotations import to_counts
from sklearn_l2d.benchmark._tables import yes
from sklearn_l2d.benchmark._worlds import shapes_apart
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.cluster._annotation_net import gather
from sklearn_l2d.datasets import (
    load_crowd,
    make_expert_groups,
    make_expert_pairs,
    make_specialists,
    sample_identified,
)


def pairs(seeds):
    """Three pairs of experts on the digits, 100 identified labels per expert."""
    figures = []
    for seed in seeds:
        X, y, roster, anonymous, pool = digits_roster(make_expert_pairs, seed, n_anonymous=1197)
        counts = to_counts(roster.annotations[anonymous], classes=roster.classes)
        settings = (
            (2, {}),
            (2, {"weight_decay": 0.015}),
            (2, {"weight_decay": 0.005}),
            (3, {"init": "random"}),
            (1, {}),
        )
        default, more, less, random, one = (fit(K, seed, X[anonymous], counts, **kw) for K, kw in settings)
        row = []
        for same_items in (False, True):
            for draw in range(N_DRAWS):
                kept = sample_identified(
                    roster.annotations[pool], 100, same_items=same_items, random_state=seed + 1000 * draw
                )
                weights = default.transform(X[pool], kept)
                groupings = {
                    "consensus start, K=2, all defaults": weights.argmax(1),
                    "the same, maximum likelihood": likeliest(default, X[pool], kept).argmax(1),
                    "consensus start, K=2, weight decay .015": more.predict(X[pool], kept),
                    "consensus start, K=2, weight decay .005": less.predict(X[pool], kept),
                    "random start, K=3": random.predict(X[pool], kept),
                    "one-net agreement": halves(net_agreement(one, X[pool], kept)),
                    "majority agreement": halves(majority_agreement(kept, len(roster.classes))),
                    "accuracy on the N' rows": halves(accuracy(kept, y[pool])),
                    "consensus start, equal thirds": np.argsort(np.argsort(-weights[:, 0])) // 2,
                }
                for score in (adjusted_rand_score, adjusted_mutual_info_score):
                    row.append([score(roster.groups, found) for found in groupings.values()])
        figures.append(np.reshape(row, (2, N_DRAWS, 2, -1)))
    figures = np.array(figures)  # seeds, items, draws, scores, groupings
    first, all_draws = figures[:, :, 0].mean(0), figures[:, :, :, 0].mean(2)
    spread = all_draws.std(0, ddof=1) / np.sqrt(len(seeds))
    rows = []
    for place, name in enumerate(groupings):
        cells = [
            f"{mean:.3f} ± {error:.3f}"
            for mean, error in zip(all_draws.mean(0)[:, place], spread[:, place], strict=True)
        ]
        rows.append([name, *first[0, :, place], *first[1, :, place], *cells, ""])
    for row in (0, 2, 3):
        rows[row][-1] = " / ".join(map(verdict, first[:, 0, row], [0.39, 0.35]))
    table(
        f"Digits, three pairs, N'=100, seeds {seeds[0]} to {seeds[-1]}: two labels allow at most .444 / .615. "
        f"ARI must reach .39 with different and .35 with the same items. Last, mean ARI of {N_DRAWS} draws of items",
        [
            "hard clusters by",
            "ARI, different items",
            "AMI, different items",
            "ARI, same items",
            "AMI, same items",
            "draws, different",
            "draws, same",
            "reached",
        ],
        rows,
    )


def cue(seeds):
    """Answering policies of real lab subjects, trained on other shapes than those they are placed on."""
    X, y, shape, annotations, n_classes = cue_sessions()
    by_texture = accuracy(annotations, y) < 0.3
    sizes, figures = (10, 25, 50), []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        held_out = shapes_apart(shape, rng)
        counts = to_counts(annotations[~held_out], classes=np.arange(n_classes))
        settings = ((2, {}), (2, {"init": "random"}), (1, {}), (2, {"weight_decay": 0.015}))
        models = [fit(K, seed, X[~held_out], counts, **kw) for K, kw in settings]
        linear = LogisticRegression(C=0.01, max_iter=500).fit(X[~held_out], counts.argmax(1))
        row = []
        for size in sizes:
            kept = sample_identified(annotations[held_out], size, random_state=rng)
            test = X[held_out], kept
            row.append(
                {
                    "consensus start": models[0].predict(*test),
                    "the same, maximum likelihood": likeliest(models[0], *test).argmax(1),
                    "the same, one pseudo-label each": drawn_to_average(models[0], *test).argmax(1),
                    "consensus start, weight decay .015": models[3].predict(*test),
                    "random start": models[1].predict(*test),
                    "one-net agreement": halves(net_agreement(models[2], *test)),
                    "logistic regression agreement": halves(linear_agreement(linear, *test, n_classes)),
                    "majority agreement": halves(majority_agreement(kept, n_classes)),
                    "accuracy on the labels": halves(accuracy(kept, y[held_out])),
                }
            )
        figures.append([[adjusted_rand_score(by_texture, found) for found in cell.values()] for cell in row])
    ari = np.mean(figures, axis=0).T
    bounds = (0.70, 0.90, 0.90)
    rows = [[name, *values, ""] for name, values in zip(row[0], ari, strict=True)]
    lead = ari[0, 0] - ari[5:7, 0].max()
    rows[0][4] = " / ".join(map(verdict, ari[0], bounds)) + f"; lead at 10 {lead:.2f}: {verdict(lead, 0.1)}"
    table(
        "cue_conflict, 30 sessions of which 7 answer by texture, K=2: ARI against the policies. Must reach "
        ".70 / .90 / .90 and lead agreement with one classifier by .10 at 10",
        ["hard clusters by", *(f"{size} labels" for size in sizes), "reached"],
        rows,
    )


def hundred(seeds):
    """Ability scores of 100 experts."""
    sizes, figures = (25, 50), []
    for seed in seeds:
        X, y, roster, anonymous, pool = digits_roster(make_expert_groups, seed, n_anonymous=1097)
        counts = to_counts(roster.annotations[anonymous], classes=roster.classes)
        models = [fit(K, seed, X[anonymous], counts, **kw) for K, kw in ((4, {}), (4, {"init": "random"}), (1, {}))]
        row = []
        for size in sizes:
            kept = sample_identified(roster.annotations[pool], size, random_state=seed)
            scores = {
                "consensus start": models[0].transform(X[pool], kept) @ np.arange(3, -1, -1),
                "the same, maximum likelihood": likeliest(models[0], X[pool], kept) @ np.arange(3, -1, -1),
                "random start": models[1].transform(X[pool], kept) @ np.arange(3, -1, -1),
                "one-net agreement": net_agreement(models[2], X[pool], kept),
                "majority agreement": majority_agreement(kept, len(roster.classes)),
                "accuracy on the N' rows": accuracy(kept, y[pool]),
            }
            row.append([spearmanr(found, -roster.realized_rates)[0] for found in scores.values()])
        figures.append(row)
    rho = np.mean(figures, axis=0).T
    rows = [[name, *values, ""] for name, values in zip(scores, rho, strict=True)]
    rows[0][3] = " / ".join(map(verdict, rho[0] - rho[3], (-0.01, -0.01)))
    table(
        "100 experts in 10 groups, K=4, different items: rank correlation with true accuracy. Must not be below "
        "one-net agreement by more than .01",
        ["score", *(f"N'={size}" for size in sizes), "reached"],
        rows,
    )


def labelme(seeds):
    """Ability of real annotators of photographs."""
    real_abilities("labelme", 2, 0.45, seeds[:5])


def music(seeds):
    """Ability of real annotators of music."""
    real_abilities("music_genre", 3, 0.70, seeds[:5])


def real_abilities(name, n_clusters, bound, seeds):
    """Rank correlation of membership in cluster 0 with true accuracy, in sample and on held-out items."""
    crowd = load_crowd(name)
    labelled = np.flatnonzero(crowd.counts.sum(1))
    X, y, n_classes = StandardScaler().fit_transform(crowd.X[labelled]), crowd.y[labelled], crowd.counts.shape[1]
    annotations = crowd.annotations[labelled]
    counts, annotations = crowd.counts[labelled], annotations[:, (annotations >= 0).sum(0) >= 20]
    truth = accuracy(annotations, y)
    figures = []
    for seed in seeds:
        held_out = np.random.default_rng(seed).permutation(len(X)) < 0.3 * len(X)
        row = []
        for train, test in ((held_out >= 0, held_out >= 0), (~held_out, held_out)):
            known = (annotations[test] >= 0).sum(0) >= 5
            place = [X[train], counts[train], X[test], annotations[test][:, known]]
            model = fit(n_clusters, seed, *place[:2])
            scores = {
                "consensus start": model.transform(*place[2:])[:, 0],
                "the same, maximum likelihood": likeliest(model, *place[2:])[:, 0],
                "the same, one pseudo-label each": drawn_to_average(model, *place[2:])[:, 0],
                "random start": membership(n_clusters, seed, *place, init="random")[:, 0],
                "one-net agreement": one_net_agreement(seed, *place),
                "majority agreement": majority_agreement(place[3], n_classes, counts[test]),
                "accuracy on the same labels": accuracy(place[3], y[test]),
            }
            row.append([spearmanr(score, truth[known])[0] for score in scores.values()])
        figures.append(row)
    rho = np.mean(figures, axis=0).T
    rows = [[score, *values, ""] for score, values in zip(scores, rho, strict=True)]
    rows[0][3] = verdict(rho[0, 0], bound)
    table(
        f"{name}, K={n_clusters}, annotators with 20 labels or more: rank correlation with true accuracy, "
        f"seeds {seeds[0]} to {seeds[-1]}. Must reach {bound:.2f} in sample",
        ["score", "in sample", "30 % held-out items", "reached"],
        rows,
    )


def specialists(seeds):
    """What anonymous counts cannot show."""
    figures = []
    for seed in seeds:
        X, _, roster, anonymous, pool = digits_roster(make_specialists, seed, n_anonymous=1197)
        counts = to_counts(roster.annotations[anonymous], classes=roster.classes)
        kept = sample_identified(roster.annotations[pool], 100, random_state=seed)
        found = [membership(3, seed, X[anonymous], counts, X[pool], kept, init=init) for init in STARTS]
        figures.append([adjusted_rand_score(roster.groups, weights.argmax(1)) for weights in found])
    table(
        "12 specialists of equal accuracy, K=3, N'=100: anonymous counts cannot show them",
        ["hard clusters by", "ARI"],
        [[f"{init} start", ari] for init, ari in zip(STARTS, np.mean(figures, axis=0), strict=True)],
    )


def numbers(seeds):
    """A Dirichlet process with up to six behaviours against one fit for every number of them."""
    rows = []
    for name, make in NUMBERS.items():
        figures = []
        for seed in seeds[:3]:
            X, counts = make(seed)
            test = np.random.default_rng(seed).permutation(len(X)) < len(X) / 5
            grid = [{"n_clusters": K} for K in (1, 2, 3, 4)]
            process = {"n_clusters": 6, "weight_concentration_prior_type": "dirichlet_process"}
            row = []
            for settings in (*grid, process, {"n_clusters": 2, "learn_alpha": True}):
                start = time.process_time()
                model = AnnotatorLDA(random_state=seed, **settings).fit(X[~test], counts[~test])
                spent = time.process_time() - start
                perplexity = model.perplexity(X[test], counts[test], method="sobol")
                row.append((perplexity, spent, len(model.cluster_weights_)))
            figures.append(row)
        perplexity, spent, n_left = np.moveaxis(np.array(figures), 2, 0)
        mean, n_left = perplexity.mean(0), n_left[:, 4].astype(int)
        best = mean[:4].argmin()
        change, times = mean[4] / mean[best] - 1, np.mean(spent[:, 4] / spent[:, best])
        rows.append(
            [name, *mean[:4], mean[4], ", ".join(map(str, n_left)), f"{100 * change:+.1f} %", times, mean[5],
             f"{yes(change <= 0.005)} / {verdict(-times, -2)}"]
        )  # fmt: skip
    table(
        "Held-out perplexity of a fifth of the items, seeds 0 to 2: Dirichlet process, up to six behaviours, beside "
        "one fit per K. Must be within .5 % of the best K, in at most twice the time of its fit",
        ["set", "K=1", "K=2", "K=3", "K=4", "process", "behaviours left", "against the best K", "times its CPU time",
         "K=2, learnt alpha", "reached"],
        rows,
    )  # fmt: skip


def digits_archive(make, seed, n_anonymous):
    """Items and votes of the digits whose annotators are forgotten."""
    X, _, roster, anonymous, _ = digits_roster(make, seed, n_anonymous=n_anonymous)
    return X[anonymous], to_counts(roster.annotations[anonymous], classes=roster.classes)


def cue_archive(seed):
    """Items and votes of all sessions; the seed changes nothing."""
    X, _, _, annotations, n_classes = cue_sessions()
    return X, to_counts(annotations, classes=np.arange(n_classes))


NUMBERS = {
    "digits, 6 experts": lambda seed: digits_archive(make_expert_pairs, seed, 1197),
    "digits, 100 experts": lambda seed: digits_archive(make_expert_groups, seed, 1097),
    "cue_conflict": cue_archive,
}


def epochs(seeds):
    """An epoch of EM against a supervised epoch of the same nets on the same batches."""
    rows = []
    for n_distinct, n_classes, bound in ((2, 10, 1.25), (6, 100, 1.6)):
        X, counts = synthetic_counts(40_000, 128, n_distinct, n_classes, seeds[0])
        settings = {"init": "random", "weight_decay": 0.015, "batch_size": 256, "max_epochs": 1}
        lda = AnnotatorLDA(3, **settings, random_state=0).fit(X, counts)
        lda.net_.random = OwnRandom(own_generator(0))  # a training is over with its fit
        data = Rows(X, *sparse_counts(counts), dtype=torch.float32)
        ratio, ours, plain = cpu_ratio(
            lambda net=lda.net_, data=data: net.train_epoch(data), plain_epoch(X, counts), n_repeats=9
        )
        name = f"{n_distinct} distinct labels per item, C={n_classes}"
        rows.append([name, ours, plain, ratio, f"<= {bound}", verdict(-ratio, -bound)])
    table(
        "Epoch of EM against a plain supervised epoch: 40,000 x 128, K=3, batches of 256, CPU seconds, median of 9",
        ["data", "EM", "plain", "ratio", "must reach", "reached"],
        rows,
    )


def e_step(seeds):
    """The E-step does not grow with the number of classes."""
    calls = []
    for n_classes in (1000, 10):
        rng = np.random.default_rng(seeds[0])
        labels = torch.as_tensor(np.argsort(rng.random((256, 10)), axis=1)[:, :6] * (n_classes // 10))
        votes, alpha = torch.ones(256, 6, dtype=torch.float64), torch.full((3,), 50.0, dtype=torch.float64)
        log_proba = torch.log_softmax(torch.as_tensor(rng.standard_normal((3, 256, n_classes))), 2)

        def call(log_proba=log_proba, labels=labels, votes=votes, alpha=alpha):
            for _ in range(200):
                responsibilities(gather(log_proba, labels), votes, alpha, max_sweeps=20, tol=1e-2)

        calls.append(call)
    ratio, many, few = cpu_ratio(*calls, n_repeats=9)
    table(
        "E-step of 256 items with the same 6 votes, CPU milliseconds, median of 9",
        ["C=1,000", "C=10", "ratio", "must reach", "reached"],
        [[5 * many, 5 * few, ratio, "<= 1.5", verdict(-ratio, -1.5)]],
    )


def memberships(seeds):
    """Certified memberships of 10,000 experts against a general-purpose optimiser."""
    rng = np.random.default_rng(seeds[0])
    n_experts, n_labels, n_slow = 10_000, 100, 100
    log_proba = np.log(rng.dirichlet(np.full(10, 0.5), size=(n_experts * n_labels, 3)))
    behaviour = (rng.random((n_experts, n_labels, 1)) > rng.dirichlet(np.ones(3), n_experts)[:, None].cumsum(2)).sum(2)
    rows = np.arange(n_experts * n_labels)
    cdf = np.exp(log_proba[rows, behaviour.ravel().clip(max=2)]).cumsum(1)
    label = (rng.random((len(rows), 1)) > cdf).sum(1).clip(max=9)
    log_f, expert = log_proba[rows, :, label], np.repeat(np.arange(n_experts), n_labels)
    gaps = {}

    def newton():
        gaps["Newton"] = mixture_weights(log_f, expert, n_experts)[1]

    def slsqp():
        f = np.exp(log_f[: n_slow * n_labels]).reshape(n_slow, n_labels, 3)
        gaps["SLSQP"] = [gap_of(one, slsqp_weights(one)) for one in f]

    ratio, slow, fast = cpu_ratio(slsqp, newton, n_repeats=5)
    times = ratio * n_experts / n_slow
    certified = {name: np.mean(np.asarray(gap) <= 1e-6) for name, gap in gaps.items()}
    table(
        "Memberships of 10,000 experts with 100 labels each, K=3, median of 5",
        ["method", "CPU ms per expert", "certified to 1e-6", "times faster", "must reach", "reached"],
        [
            ["Newton", 1e3 * fast / n_experts, certified["Newton"], times, ">= 30, all certified",
             f"{verdict(times, 30)} / {verdict(certified['Newton'], 1)}"],
            [f"SLSQP, first {n_slow} experts", 1e3 * slow / n_slow, certified["SLSQP"], "", "", ""],
        ],
    )  # fmt: skip


def likelihoods(seeds):
    """Held-out likelihood: by chunks, by enumeration, by draws."""
    rng = np.random.default_rng(seeds[0])
    log_f = np.log(rng.dirichlet(np.ones(4), size=(50, 3)).transpose(0, 2, 1)[:, :3])
    votes, alpha = rng.integers(0, 3, size=(50, 3)), np.array([0.7, 2.0, 5.0])
    exact = log_marginal_exact(log_f, votes, alpha)
    by_hand = np.array([enumerated(f, v, alpha) for f, v in zip(log_f, votes, strict=True)])
    drawn = log_marginal_draws(log_f, votes, alpha)
    X, counts = synthetic_counts(500, 10, 3, 6, seeds[0])
    lda = fit(3, 0, X, counts, max_epochs=5)
    chunks = np.array_split(np.arange(500), 7)
    joined = sum(lda.score(X[c], counts[c]) * counts[c].sum() for c in chunks) / counts.sum()
    figures = {
        "score over chunks against all, relative": (abs(joined / lda.score(X, counts) - 1), 1e-10),
        "exact against enumeration": (np.abs(exact - by_hand).max(), 1e-10),
        "Sobol against exact, per annotation": (np.max(np.abs(drawn - exact) / votes.sum(1).clip(min=1)), 0.002),
    }
    table(
        "Held-out likelihood",
        ["largest difference", "is", "must reach", "reached"],
        [[name, f"{d:.1e}", f"<= {b:g}", yes(d <= b)] for name, (d, b) in figures.items()],
    )


def searches(seeds):
    """Grid search over a pipeline with the default scorer."""
    X, counts = synthetic_counts(300, 10, 3, 6, seeds[0])
    grid = {"annotatorlda__n_clusters": [1, 2], "annotatorlda__alpha": [1.0, 50.0]}
    pipeline = make_pipeline(StandardScaler(), AnnotatorLDA(max_epochs=5, likelihood="sobol", random_state=0))
    scores = [
        GridSearchCV(pipeline, grid, cv=KFold(3, shuffle=True, random_state=0), n_jobs=n_jobs)
        .fit(X, counts)
        .cv_results_["mean_test_score"]
        for n_jobs in (1, 2)
    ]
    equal = np.array_equal(*scores)
    table("GridSearchCV over n_clusters and alpha", ["n_jobs=2 equals n_jobs=1"], [[yes(equal)]])


def checks(seeds):
    """scikit-learn's own checks of an estimator."""
    rows = []
    for dtype in ("float64", "float32"):
        settings = {"max_epochs": 5, "n_consensus_epochs": 2, "n_anchor_epochs": 2, "hidden_layer_sizes": (8,)}
        lda = AnnotatorLDA(dtype=dtype, random_state=0, **settings)
        results = check_estimator(lda, expected_failed_checks=EXPECTED, on_fail=None)
        statuses = "passed", "skipped", "xfail", "failed"
        by_status = {s: [r["check_name"] for r in results if r["status"] == s] for s in statuses}
        failed = by_status["failed"]
        allowed = 0 if dtype == "float64" else 1
        rows.append(
            [dtype, len(by_status["passed"]), len(by_status["skipped"]), ", ".join(by_status["xfail"]) or "none",
             ", ".join(failed) or "none", yes(len(failed) <= allowed)]
        )  # fmt: skip
    columns = ["dtype", "passed", "skipped", "expected to fail", "failed", "reached"]
    table("Estimator checks of scikit-learn", columns, rows)


EXPECTED = {"check_sample_weight_equivalence_on_dense_data": "an item twice is in two batches, or twice in one"}
STARTS = ("consensus", "random")
N_DRAWS = 11  # of identified items: one of them says little of six people


ACCURACY = (pairs, cue, hundred, labelme, music, specialists, suggest, numbers)
SPEED = (epochs, e_step, memberships)
CORRECTNESS = (likelihoods, searches, checks)
TABLES = {function.__name__: function for function in (*ACCURACY, *SPEED, *CORRECTNESS)}

if __name__ == "__main__":
    run(TABLES, "AnnotatorLDA beside its rivals", "Default parameters were tuned on seeds 100 to 119.")
