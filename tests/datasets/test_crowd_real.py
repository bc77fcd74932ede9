"""The real sets against the figures their descriptions publish."""

import os

import numpy as np
import pytest

from sklearn_l2d.datasets import list_crowds, load_crowd

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("SKLEARN_L2D_DATA" not in os.environ, reason="SKLEARN_L2D_DATA names no data folder"),
]

# name: items, annotators, labels, classes, features, accuracy of a label, accuracy of the majority vote.
PUBLISHED = {
    "armis": (943, 3, 2829, 2, 128, 0.8848, 1.0),
    "chaosnli": (3113, None, 311300, 3, 1536, 0.6077, 0.7138),
    "chaosnli_logits": (3083, None, 308300, 3, 9, None, None),
    "chaoyang": (6160, 3, 18480, 4, None, 0.9285, 0.9985),
    "cifar10": (60000, None, 661000, 10, 256, None, None),
    "cifar10_hog_colour": (60000, None, 661000, 10, 64, None, None),
    "cifar10_patch_kmeans": (60000, None, 661000, 10, 128, None, None),
    "cifar100n": (50000, 519, 50000, 100, None, 0.598, None),
    "cifar100n_coarse": (50000, 519, 50000, 20, None, 0.736, None),
    "convabuse": (4050, 8, 12168, 2, 256, 0.9513, 0.9852),
    "cue_conflict": (1600, 50, 41068, 16, 1280, None, None),
    "hate_offensive": (24783, None, 80383, 3, 128, 0.9046, 1.0),
    "hs_brexit": (1120, 6, 6720, 2, 384, 0.9034, 0.9634),
    "labelme": (2688, 59, 2547, 8, 512, 0.7405, 0.766),
    "md_agreement": (10753, 819, 53765, 2, 256, 0.8274, 1.0),
    "medical_relation_cause": (3984, 466, 48868, 2, 256, 0.7642, 0.7815),
    "medical_relation_treat": (3984, 466, 48868, 2, 256, 0.7707, 0.835),
    "model_vs_human": (18080, 90, 84523, 16, None, 0.6654, 0.6924),
    "music_genre": (1000, 44, 2945, 10, 57, 0.5603, 0.7171),
    "nih_readers_fracture": (4376, 22, 13077, 2, None, 0.9684, 0.9696),
    "nih_readers_pneumothorax": (4376, 22, 12913, 2, None, 0.9692, 0.9806),
    "nih_readers_airspace_opacity": (4376, 22, 13077, 2, None, 0.8842, 0.9415),
    "nih_readers_nodule_or_mass": (4376, 22, 12816, 2, None, 0.9259, 0.9451),
    "popquorn_offensive": (1500, 262, 13036, 5, 384, None, None),
    "product_match": (8315, 176, 24945, 2, 13, 0.8163, 0.8966),
    "recidivism_compas": (7214, 102, 5100, 2, 6, 0.6237, 0.6352),
    "recidivism_compas_violent": (7214, 108, 5400, 2, 6, 0.6796, 0.7335),
    "recidivism_lsi_balanced": (311, 209, 10450, 2, None, 0.544, 0.5402),
    "recidivism_lsi_low": (1954, 226, 11300, 2, None, 0.6839, 0.7238),
    "sentiment_polarity": (4999, 203, 27746, 2, 384, 0.7895, 0.8868),
    "label_only_bluebird": (108, 39, 4212, 2, None, 0.6356, 0.7593),
    "label_only_dog": (807, 109, 8070, 4, None, 0.6964, 0.8228),
    "label_only_rte": (800, 164, 8000, 2, None, 0.7291, 0.8975),
    "label_only_trec": (19033, 762, 88385, 2, None, 0.6121, 0.6492),
    "label_only_web": (2665, 177, 15567, 5, None, 0.5515, 0.738),
    "label_only_weather_cf": (300, 461, 1720, 5, None, 0.7657, 0.8767),
    "label_only_weather_amt": (300, 110, 6025, 5, None, 0.7049, 0.8533),
    "label_only_sentiment_sp_amt": (500, 143, 10000, 2, None, 0.8935, 0.944),
    "label_only_zencrowd_all": (2040, 78, 20125, 2, None, 0.7253, 0.826),
    "label_only_tweet_sentiment": (1000, 85, 20000, 2, None, 0.6865, 0.934),
    "label_only_face_sentiment": (584, 27, 5242, 4, None, 0.5862, 0.6387),
    "label_only_relevance": (20232, 766, 96883, 4, None, 0.4413, 0.5424),
    "label_only_adult_content": (11040, 825, 89799, 4, None, 0.6813, 0.7568),
    "label_only_fact_eval": (42624, 57, 214915, 3, None, 0.8949, 0.901),
}
# Readers in the order of the file, one line per finding.
CHEXPERT = {
    "no_finding": [0.932, 0.842, 0.946, 0.916, 0.892, 0.878, 0.938, 0.774],
    "enlarged_cardiomediastinum": [0.858, 0.888, 0.684, 0.796, 0.802, 0.796, 0.776, 0.764],
    "cardiomegaly": [0.892, 0.898, 0.696, 0.81, 0.646, 0.794, 0.908, 0.836],
    "lung_opacity": [0.896, 0.852, 0.848, 0.848, 0.848, 0.866, 0.882, 0.854],
    "lung_lesion": [0.956, 0.978, 0.986, 0.99, 0.992, 0.988, 0.95, 0.988],
    "edema": [0.866, 0.914, 0.884, 0.87, 0.92, 0.81, 0.88, 0.872],
    "consolidation": [0.872, 0.93, 0.784, 0.876, 0.964, 0.886, 0.948, 0.936],
    "pneumonia": [0.894, 0.962, 0.944, 0.944, 0.97, 0.978, 0.97, 0.94],
    "atelectasis": [0.866, 0.85, 0.788, 0.792, 0.838, 0.79, 0.858, 0.758],
    "pneumothorax": [0.982, 0.994, 0.994, 0.99, 0.988, 0.99, 0.99, 0.986],
    "pleural_effusion": [0.804, 0.894, 0.928, 0.92, 0.926, 0.826, 0.896, 0.87],
    "pleural_other": [0.984, 0.988, 0.944, 0.978, 0.97, 0.97, 0.968, 0.986],
    "fracture": [0.984, 0.99, 0.996, 0.972, 0.994, 0.986, 0.954, 0.992],
    "support_devices": [0.88, 0.92, 0.93, 0.926, 0.964, 0.932, 0.896, 0.944],
}


def label_accuracy(counts, y):
    return counts[np.arange(len(y)), y].sum() / counts.sum()


def vote_accuracy(counts, y):
    """Mean accuracy of the majority vote when ties are broken at random, and its standard deviation."""
    best = counts == counts.max(axis=1, keepdims=True)
    right = (best / best.sum(axis=1, keepdims=True))[np.arange(len(y)), y]
    return right.mean(), np.sqrt((right * (1 - right)).sum()) / len(y)


def test_no_set_is_left_out():
    assert sorted([*PUBLISHED, *(f"chexpert_readers_{finding}" for finding in CHEXPERT)]) == list_crowds()


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_figures(name):
    n_items, n_annotators, n_labels, n_classes, n_features, accuracy, vote = PUBLISHED[name]
    crowd = load_crowd(name)
    assert crowd.counts.shape == (n_items, n_classes)
    assert crowd.counts.sum() == n_labels
    assert (None if crowd.X is None else crowd.X.shape) == (n_features and (n_items, n_features))
    assert crowd.X is None or np.isfinite(crowd.X).all()
    if n_annotators is None:
        assert crowd.annotations is None
    else:
        assert crowd.annotations.shape == (n_items, n_annotators)
        assert len(np.unique(crowd.ann_annotator)) == n_annotators
    assert crowd.DESCR.startswith("# ")
    scored = (crowd.y >= 0) & (crowd.counts.sum(axis=1) > 0)
    counts, y = crowd.counts[scored], crowd.y[scored]
    if accuracy is not None:
        assert label_accuracy(counts, y) == pytest.approx(accuracy, abs=6e-5)
    if vote is not None:
        mean, sd = vote_accuracy(counts, y)
        assert mean == pytest.approx(vote, abs=6e-5 + 3 * sd)


@pytest.mark.parametrize("finding", CHEXPERT)
def test_published_accuracy_of_every_reader(finding):
    crowd = load_crowd(f"chexpert_readers_{finding}")
    assert crowd.X.shape == (500, 50)
    accuracy = (crowd.annotations == crowd.y[:, None]).mean(axis=0)
    np.testing.assert_allclose(accuracy, CHEXPERT[finding], atol=1e-9)


def test_cifar10_crowds_of_both_parts():
    crowd = load_crowd("cifar10")
    for part, n, accuracy, vote in ((0, 50_000, 0.8233, 0.9111), (1, 10_000, 0.9524, 0.9922)):
        rows = crowd.split == part
        assert rows.sum() == n
        assert label_accuracy(crowd.counts[rows], crowd.y[rows]) == pytest.approx(accuracy, abs=6e-5)
        mean, sd = vote_accuracy(crowd.counts[rows], crowd.y[rows])
        assert mean == pytest.approx(vote, abs=6e-5 + 3 * sd)
    assert (crowd.train_worst == crowd.y[crowd.split == 0]).mean() == pytest.approx(0.5979, abs=6e-5)


def test_cue_conflict_conditions():
    crowd = load_crowd("cue_conflict")
    condition = crowd.annotator_condition[crowd.ann_annotator]
    right = crowd.ann_label == crowd.y[crowd.ann_item]
    published = {
        "free": (12669, 0.7836),
        "shape_instructed": (12723, 0.8349),
        "texture_instructed": (12532, 0.3395),
        "edges": (1566, 0.8902),
        "silhouettes": (1578, 0.7636),
    }
    for code, name in enumerate(crowd.condition_names):
        labels, accuracy = published[name]
        assert (condition == code).sum() == labels
        assert right[condition == code].mean() == pytest.approx(accuracy, abs=6e-5)


def test_music_genre_truth_and_labels_share_one_order_of_rows():
    crowd = load_crowd("music_genre")
    labelled = crowd.counts.sum(axis=1) > 0
    np.testing.assert_array_equal(labelled, crowd.split == 0)
    assert labelled.sum() == 700
