"""Real annotation sets as one form of Bunch."""

import difflib
import os
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from .._encoding import tally
from ._crowd_readers import Folder
from ._crowd_table import CROWDS

_WIDE_LIMIT = 50_000_000  # cells of the wide annotation table, at one or two bytes each
_ENTRY = ("ann_item", "ann_annotator", "ann_label")


def list_crowds():
    """Names that :func:`load_crowd` accepts.

    Returns
    -------
    list of str
        Sorted names.

    Examples
    --------
    >>> from sklearn_l2d.datasets import list_crowds
    >>> "cue_conflict" in list_crowds()
    True
    """
    return sorted(CROWDS)


def load_crowd(name, *, data_home=None):
    """Load a real set of human annotations.

    The files are read, never fetched, unpacked or written: put them below `data_home` first, one folder per
    source. Sets with several tasks have one name per task, such as "nih_readers_airspace_opacity",
    "chexpert_readers_edema", "medical_relation_treat", "recidivism_compas", "label_only_bluebird";
    :func:`list_crowds` returns all. "cifar10" has three feature sets ("cifar10", "cifar10_patch_kmeans" and
    "cifar10_hog_colour", from strong to weak) and holds the 50,000 train images with the three CIFAR-10N
    labels of each (split 0), then the 10,000 test images with the CIFAR-10H counts (split 1): two different
    crowds. "chaosnli" has sentence embeddings as features, "chaosnli_logits" the logits of three classifiers,
    without the 30 items they did not see.

    Parameters
    ----------
    name : str
        Name of the set.
    data_home : str or path-like, default=None
        Folder that holds the data folders. Default: the environment variable SKLEARN_L2D_DATA, else
        "sklearn_l2d" in the data folder of scikit-learn (SCIKIT_LEARN_DATA or ~/scikit_learn_data).

    Returns
    -------
    Bunch
        In every set:

        - ``X`` : float32 array of shape (n_items, n_features), not scaled, or None.
        - ``y`` : int array of shape (n_items,), the true class as given, -1 where unknown. In some sets it is
          the majority of the same labels; ``DESCR`` says so.
        - ``counts`` : int32 array of shape (n_items, n_classes), labels per class; zero rows are unlabelled.
        - ``ann_item``, ``ann_annotator``, ``ann_label`` : int arrays of shape (n_labels,), who labelled what;
          None in anonymous sets. Trials without an answer and hedges are left out.
        - ``annotations`` : the same as a wide table of shape (n_items, n_annotators) in the smallest signed
          integers, -1 missing; None in anonymous sets and above 50 million cells. Where one annotator
          labelled an item twice, the later label stands here and both in ``counts``.
        - ``annotator_names``, ``feature_names``, ``split``, ``split_names`` : None where the set has none;
          ``split`` has shape (n_items,) and ``split_names`` says what its codes mean.
        - ``target_names`` : class names, the class numbers where the set has no names.
        - ``name`` and ``DESCR`` : name of the set and its README.

        Anything else the files hold comes under its own name: groups for splitting such as ``shape_id`` or
        ``patient``, ``ann_rt`` and the like with one entry per label, ``annotator_condition`` and the like
        with one entry per annotator, decisions of models.

    Raises
    ------
    FileNotFoundError
        If a file is missing; the message names the path.
    ValueError
        If the name is unknown, or a file is damaged, truncated, or holds arrays whose lengths or codes do not
        fit the published sizes.

    Examples
    --------
    The data do not come with the package, hence no output is checked here.

    >>> from sklearn_l2d.datasets import load_crowd
    >>> crowd = load_crowd("music_genre")  # doctest: +SKIP
    >>> crowd.X.shape, crowd.annotations.shape  # doctest: +SKIP
    ((1000, 57), (1000, 44))
    """
    if name not in CROWDS:
        close = difflib.get_close_matches(str(name), CROWDS, n=3, cutoff=0.4) or list(CROWDS)
        raise ValueError(f"{name!r} is no known set; use one of {close}. list_crowds() names all.")
    spec = CROWDS[name]
    folder = Folder(_data_home(data_home) / spec.folder)
    arrays = dict(spec.read(folder))
    where = " + ".join(str(path) for path in folder.files)
    _check(arrays, spec, where)
    readme = folder.path / "README.md"
    described = readme.read_text(encoding="utf-8") if readme.is_file() else f"{name}, read from {where}."
    classes = arrays.pop("classes", spec.classes or range(spec.n_classes))
    X, y = arrays.pop("X", None), arrays.pop("y")
    return Bunch(
        name=name,
        X=None if X is None else X.astype(np.float32),
        y=y.astype(np.intp),
        target_names=np.array([str(label) for label in classes]),
        split_names=spec.splits or None,
        DESCR=described,
        **(_anonymous if spec.n_annotators is None else _identified)(arrays, spec),
        **{key: arrays.pop(key, None) for key in ("split", "annotator_names", "feature_names")},
        **arrays,
    )


def _data_home(data_home):
    if data_home is None:
        data_home = os.environ.get("SKLEARN_L2D_DATA")
    if data_home is None:
        # scikit-learn's own get_data_home would create the folder; reading must not.
        data_home = Path(os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")) / "sklearn_l2d"
    return Path(data_home).expanduser()


def _check(arrays, spec, where):
    """Reject arrays whose lengths or codes contradict each other or the published sizes."""
    identified = spec.n_annotators is not None
    for key in ("y", *(_ENTRY if identified else ("counts",))):
        if key not in arrays:
            raise ValueError(f"{where}: lacks the array {key!r}; it is not the expected file.")
    n_entries = len(arrays["ann_label"]) if identified else None
    for key, array in arrays.items():
        if key.startswith("ann_"):
            expected, unit = n_entries, "entry of ann_label"
        elif key.startswith("annotator_"):
            expected, unit = spec.n_annotators, "annotator"
        elif key == "classes":
            expected, unit = spec.n_classes, "class"
        elif key.endswith("_names") or key.startswith(spec.loose):
            continue
        else:
            expected, unit = spec.n_items, "item"
        if len(array) != expected:
            raise ValueError(
                f"{where}: array {key!r} has {len(array)} rows, not {expected} (one per {unit}); fetch it again."
            )
    if not identified and arrays["counts"].shape[1:] != (spec.n_classes,):
        raise ValueError(f"{where}: array 'counts' needs {spec.n_classes} columns; fetch it again.")
    n_labels = (arrays["ann_label"] >= 0).sum() if identified else arrays["counts"].sum()
    if n_labels != spec.n_labels:
        raise ValueError(f"{where}: holds {n_labels} labels instead of {spec.n_labels}; fetch it again.")
    limits = {
        "y": (-1, spec.n_classes),
        "ann_label": (-1, spec.n_classes),
        "ann_item": (0, spec.n_items),
        "ann_annotator": (0, spec.n_annotators),
    }
    for key, (low, high) in limits.items():
        if key in arrays and not ((arrays[key] >= low) & (arrays[key] < high)).all():
            raise ValueError(f"{where}: array {key!r} holds codes outside [{low}, {high}); fetch it again.")


def _anonymous(arrays, spec):
    nobody = dict.fromkeys(("annotations", *_ENTRY))
    return {"counts": arrays.pop("counts").astype(np.int32)} | nobody


def _identified(arrays, spec):
    """The labels as entries, as counts and as a wide table; entries without an answer are dropped."""
    answered = arrays["ann_label"] >= 0
    entries = {key: arrays.pop(key)[answered] for key in list(arrays) if key.startswith("ann_")}
    item, annotator, label = (entries[key].astype(np.intp) for key in _ENTRY)
    entries |= dict(zip(_ENTRY, (item, annotator, label), strict=True))

    counts = tally(item, label, (spec.n_items, spec.n_classes))
    wide = None
    if spec.n_items * spec.n_annotators <= _WIDE_LIMIT:
        wide = np.full((spec.n_items, spec.n_annotators), -1, dtype=np.min_scalar_type(-spec.n_classes))
        wide[item, annotator] = label
    return {"counts": counts.astype(np.int32), "annotations": wide} | entries
