"""From files to arrays: one small reader per file layout of the real annotation sets.

A reader takes a :class:`Folder` and returns a dict of arrays under these names; every other entry reaches the
user as it is::

    X             (n_items, ...)          features
    y             (n_items,)              class index of the truth, -1 unknown
    split         (n_items,)              part of each item
    classes       (n_classes,)            class names
    counts        (n_items, n_classes)    anonymous sets: labels per class
    ann_item, ann_annotator, ann_label    identified sets: one entry per label, label -1 is none

Names that start with `ann_` or `annotator_` hold one entry per label or per annotator, all others one per
item, unless `_crowd_table.py` calls them loose.
"""

import csv
import zipfile
import zlib
from pathlib import Path

import numpy as np


class Folder:
    """One data folder; turns missing and damaged files into errors that name them."""

    def __init__(self, path):
        self.path = Path(path)
        self.files = []

    def _existing(self, name):
        path = self.path / name
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} does not exist. Put the data set there, or pass data_home (or set the environment "
                f"variable SKLEARN_L2D_DATA) to the folder that holds {self.path.name}/."
            )
        self.files.append(path)
        return path

    def npz(self, name, only=None):
        """Arrays of an archive, all of them or those in `only`."""
        path = self._existing(name)
        try:
            # numpy leaves a damaged file open that it has opened itself
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                return Arrays(path, {key: archive[key] for key in only or archive.files})
        except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"{path} is damaged or incomplete ({error}); fetch it again.") from error

    def annotators(self, name):
        """Columns of a table with one row per annotator, prefixed with annotator_."""
        path = self._existing(name)
        with path.open(newline="", encoding="utf-8") as lines:
            header, *rows = list(csv.reader(lines)) or [[]]
        in_order = [row[:1] for row in rows] == [[str(i)] for i in range(len(rows))]
        if header[:1] != ["annotator"] or not in_order or any(len(row) != len(header) for row in rows):
            raise ValueError(f"{path} is damaged or incomplete (rows or columns); fetch it again.")
        columns = zip(header, zip(*rows, strict=True), strict=False)  # no rows: their number is checked later
        return {f"annotator_{key}": _numbers_if_possible(column) for key, column in columns if key != "annotator"}


class Arrays(dict):
    """Arrays of one file; a missing one is an error that names the file."""

    def __init__(self, path, arrays):
        super().__init__(arrays)
        self.path = path

    def __missing__(self, key):
        raise ValueError(f"{self.path} lacks the array {key!r}; it is not the expected file.")

    def take(self, *names):
        """Remove arrays and return them."""
        found = [self[name] for name in names]
        for name in names:
            del self[name]
        return found[0] if len(found) == 1 else found


def stored(file, annotators=None):
    """Reader of a file that uses the common names already, with an optional table of annotators."""

    def read(folder):
        return folder.npz(file) | (folder.annotators(annotators) if annotators else {})

    return read


def cifar10(features, keys):
    """Train images with CIFAR-10N counts, then test images with CIFAR-10H counts, in one order of rows."""

    def read(folder):
        labels = folder.npz("labels.npz")
        inputs = folder.npz(features, only=keys)
        y_train, y_test, votes, test_counts = labels.take("y_train", "y_test", "train_labels", "test_counts")
        n_classes = test_counts.shape[1]
        train_counts = (votes[:, :, None] == np.arange(n_classes)).sum(axis=1, dtype=test_counts.dtype)
        return labels | {
            "X": np.concatenate([inputs[key] for key in keys]),
            "y": np.concatenate([y_train, y_test]),
            "counts": np.concatenate([train_counts, test_counts]),
            "split": np.repeat([0, 1], [len(y_train), len(y_test)]),
        }

    return read


def cifar100n(coarse):
    """One worker per image: the item of a label is its row."""

    def read(folder):
        arrays = folder.npz("cifar100n.npz")
        arrays["ann_item"] = np.arange(len(arrays["ann_label"]))
        if coarse:
            arrays["y_fine"], arrays["ann_label_fine"] = arrays.take("y", "ann_label")
            arrays["y"], arrays["ann_label"] = arrays.take("y_coarse", "ann_label_coarse")
        return arrays

    return read


def chaosnli(logits):
    """Premise u and hypothesis v as (u, v, |u - v|, u v), or the models' logits on the items they saw."""

    def read(folder):
        arrays = folder.npz("chaosnli.npz")
        u, v = (a.astype(np.float32) for a in arrays.take("X_premise", "X_hypothesis"))
        if not logits:
            return arrays | {"X": np.hstack([u, v, np.abs(u - v), u * v])}
        scores = arrays.take("roberta_logits").reshape(len(u), -1)
        seen = np.isfinite(scores).all(axis=1)
        per_item = ("counts", "counts_original", "y", "source")
        return arrays | {name: arrays[name][seen] for name in per_item} | {"X": scores[seen]}

    return read


def chaoyang(folder):
    """A full table of three readers."""
    arrays = folder.npz("chaoyang.npz")
    return arrays | _from_table(arrays.take("labels"))


def chexpert(finding):
    """A full table of eight readers for one finding; the probabilities of the models are the features."""

    def read(folder):
        arrays = folder.npz("chexpert_readers.npz")
        names, y, labels = arrays.take("findings", "y", "labels")
        column = _column(names, finding, arrays.path)
        probs = arrays["model_probs"]
        return arrays | {"X": probs.reshape(len(probs), -1), "y": y[:, column]} | _from_table(labels[:, :, column])

    return read


def nih(finding):
    """One of four findings; a hedge is no label."""

    def read(folder):
        arrays = folder.npz("nih_readers.npz")
        names, y, labels = arrays.take("findings", "y", "ann_label")
        column = _column(names, finding, arrays.path)
        label = labels[:, column]
        return arrays | {"y": y[:, column], "ann_label": np.where(label == 2, -1, label)}

    return read


def medical(relation, truth):
    """One of 14 relations as a binary task, against its adjudicated truth."""

    def read(folder):
        arrays = folder.npz("medical_relation.npz")
        names, chosen = arrays.take("relations", "ann_relations")
        return arrays | {
            "y": arrays.take(truth),
            "ann_label": chosen[:, _column(names, relation, arrays.path)],
            "ann_relations": chosen,
            "relation_names": names,
        }

    return read


def compas(violent):
    """The two COMPAS experiments share the defendants and differ in outcome and participants."""
    prefix = "violent_"
    table = "annotators_df_violent.csv" if violent else "annotators_df.csv"

    def read(folder):
        arrays = folder.npz("compas.npz")
        second = {key.removeprefix(prefix): arrays.take(key) for key in list(arrays) if key.startswith(prefix)}
        if violent:
            arrays |= second
            arrays["y_any"], arrays["y"] = arrays.take("y", "y_violent")
        return arrays | folder.annotators(table)

    return read


def slug(name):
    """Part of a data set's name made from a finding: lower case, words joined by underscores."""
    return str(name).lower().replace(" ", "_")


def _column(names, wanted, path):
    for column, name in enumerate(names):
        if slug(name) == slug(wanted):
            return column
    raise ValueError(f"{path} holds {[str(name) for name in names]}, not {wanted!r}; it is not the expected file.")


def _from_table(labels):
    """(n_items, n_annotators) labels as one entry per cell."""
    item, annotator = np.indices(labels.shape)
    return {"ann_item": item.ravel(), "ann_annotator": annotator.ravel(), "ann_label": labels.ravel()}


def _numbers_if_possible(texts):
    try:
        return np.array(texts, dtype=float)
    except ValueError:
        return np.array(texts)
