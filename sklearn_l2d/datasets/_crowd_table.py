"""The table of real annotation sets: add a set with one line here (and a reader, if its layout is new)."""

from collections.abc import Callable
from dataclasses import dataclass

from . import _crowd_readers as read


@dataclass(frozen=True)
class Crowd:
    """One line of the table: where a set lies, how it is read, and the published sizes it must have."""

    folder: str
    read: Callable
    n_items: int
    n_annotators: int | None  # None: anonymous
    n_labels: int
    n_classes: int
    classes: tuple = ()  # names, where the file has none
    splits: tuple = ()  # meaning of the codes in split
    loose: tuple = ()  # prefixes of arrays with a length of their own; *_names are so anyway


_THREE = ("train", "validation", "test")
_BINARY = ("no", "yes")
_CIFAR = {"splits": ("train", "test"), "loose": ("test_", "train_")}
_CHEXPERT = (
    "no_finding",
    "enlarged_cardiomediastinum",
    "cardiomegaly",
    "lung_opacity",
    "lung_lesion",
    "edema",
    "consolidation",
    "pneumonia",
    "atelectasis",
    "pneumothorax",
    "pleural_effusion",
    "pleural_other",
    "fracture",
    "support_devices",
)
_NIH = {"fracture": 13077, "pneumothorax": 12913, "airspace_opacity": 13077, "nodule_or_mass": 12816}
_LABEL_ONLY = {
    "adult_content": (11040, 825, 89799, 4),
    "bluebird": (108, 39, 4212, 2, ("Blue Grosbeak", "Indigo Bunting")),
    "dog": (807, 109, 8070, 4),
    "face_sentiment": (584, 27, 5242, 4),
    "fact_eval": (42624, 57, 214915, 3),
    "relevance": (20232, 766, 96883, 4),
    "rte": (800, 164, 8000, 2),
    "sentiment_sp_amt": (500, 143, 10000, 2),
    "trec": (19033, 762, 88385, 2),
    "tweet_sentiment": (1000, 85, 20000, 2),
    "weather_amt": (300, 110, 6025, 5),
    "weather_cf": (300, 461, 1720, 5),
    "web": (2665, 177, 15567, 5),
    "zencrowd_all": (2040, 78, 20125, 2),
}


def _own_folder(name, *sizes, annotators=None, **options):
    """A set whose only archive carries its name and uses the common array names."""
    return Crowd(name, read.stored(f"{name}.npz", annotators), *sizes, **options)


CROWDS = (
    {
        "armis": _own_folder("armis", 943, 3, 2829, 2, splits=_THREE),
        "convabuse": _own_folder("convabuse", 4050, 8, 12168, 2, splits=_THREE),
        "cue_conflict": _own_folder("cue_conflict", 1600, 50, 41068, 16),
        "hate_offensive": _own_folder("hate_offensive", 24783, None, 80383, 3),
        "hs_brexit": _own_folder("hs_brexit", 1120, 6, 6720, 2, splits=_THREE),
        "labelme": _own_folder("labelme", 2688, 59, 2547, 8, splits=_THREE),
        "md_agreement": _own_folder("md_agreement", 10753, 819, 53765, 2, splits=_THREE),
        "model_vs_human": _own_folder("model_vs_human", 18080, 90, 84523, 16),
        "music_genre": _own_folder("music_genre", 1000, 44, 2945, 10, splits=("labelled", "unlabelled")),
        "popquorn_offensive": _own_folder("popquorn_offensive", 1500, 262, 13036, 5, annotators="annotators.csv"),
        "product_match": _own_folder("product_match", 8315, 176, 24945, 2),
        "sentiment_polarity": _own_folder("sentiment_polarity", 4999, 203, 27746, 2),
        "chaosnli": Crowd("chaosnli", read.chaosnli(logits=False), 3113, None, 311300, 3),
        "chaosnli_logits": Crowd("chaosnli", read.chaosnli(logits=True), 3083, None, 308300, 3),
        "chaoyang": Crowd("chaoyang", read.chaoyang, 6160, 3, 18480, 4, splits=("train", "test")),
        "cifar100n": Crowd(
            "cifar100n", read.cifar100n(coarse=False), 50000, 519, 50000, 100, loose=("fine_to_coarse",)
        ),
        "cifar100n_coarse": Crowd(
            "cifar100n", read.cifar100n(coarse=True), 50000, 519, 50000, 20, loose=("fine_to_coarse",)
        ),
        "recidivism_lsi_balanced": Crowd(
            "recidivism",
            read.stored("lsi_balanced_br.npz", "annotators_lsi_balanced_br.csv"),
            *(311, 209, 10450, 2, _BINARY),
        ),
        "recidivism_lsi_low": Crowd(
            "recidivism",
            read.stored("lsi_low_br.npz", "annotators_lsi_low_br.csv"),
            1954,
            226,
            11300,
            2,
            _BINARY,
        ),
    }
    | {
        f"cifar10{suffix}": Crowd("cifar10", read.cifar10(file, keys), 60000, None, 661000, 10, **_CIFAR)
        for suffix, file, keys in (
            ("", "features_efficientnet_lite2.npz", ("X_train", "X_test")),
            ("_hog_colour", "features_classic.npz", ("hog_colour_train", "hog_colour_test")),
            ("_patch_kmeans", "features_classic.npz", ("patch_kmeans_train", "patch_kmeans_test")),
        )
    }
    | {
        f"recidivism_compas{suffix}": Crowd(
            "recidivism", read.compas(violent), 7214, *sizes, 2, _BINARY, splits=("not shown", "shown")
        )
        for suffix, violent, sizes in (("", False, (102, 5100)), ("_violent", True, (108, 5400)))
    }
    | {
        f"medical_relation_{truth}": Crowd(
            "medical_relation", read.medical(relation, f"y_{truth}"), 3984, 466, 48868, 2, _BINARY
        )
        for relation, truth in (("treats", "treat"), ("causes", "cause"))
    }
    | {
        f"chexpert_readers_{finding}": Crowd(
            "chexpert_readers", read.chexpert(finding), 500, 8, 4000, 2, _BINARY, loose=("model_findings",)
        )
        for finding in _CHEXPERT
    }
    | {
        f"nih_readers_{finding}": Crowd(
            "nih_readers", read.nih(finding), 4376, 22, n_labels, 2, _BINARY, splits=("validation", "test")
        )
        for finding, n_labels in _NIH.items()
    }
    | {
        f"label_only_{name}": Crowd("label_only", read.stored(f"{name}.npz"), *sizes)
        for name, sizes in _LABEL_ONLY.items()
    }
)
