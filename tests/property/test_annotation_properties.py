import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import annotation_codes, label_sets, permutations, vote_counts

from sklearn_l2d.annotations import (
    AnnotatedTarget,
    anonymize,
    encode_annotations,
    encode_counts,
    from_long,
    to_counts,
    to_long,
)


def with_none(codes):
    return np.where(codes < 0, None, codes.astype(object))


MARKERS = {
    "int8": lambda codes: codes.astype(np.int8),
    "nan": lambda codes: np.where(codes < 0, np.nan, codes),
    "none": with_none,
    "list": lambda codes: with_none(codes).tolist(),
    "pandas.NA": lambda codes: np.where(codes < 0, pd.NA, codes.astype(object)),
    "masked": lambda codes: np.ma.array(np.where(codes < 0, 777, codes), mask=codes < 0),
    "object frame": lambda codes: pd.DataFrame(with_none(codes)),
    "float frame": lambda codes: pd.DataFrame(codes).astype(float).where(codes >= 0),
    "Int64 frame": lambda codes: pd.DataFrame(with_none(codes)).astype("Int64"),
    "category frame": lambda codes: pd.DataFrame(with_none(codes)).astype("category"),
    "fortran": np.asfortranarray,
}


def naive_counts(codes, n_classes):
    return np.array([[(row == label).sum() for label in range(n_classes)] for row in codes])


@pytest.mark.parametrize("marker", MARKERS)
@given(drawn=annotation_codes(min_samples=0, min_experts=0))
def test_all_markers_mean_missing(marker, drawn):
    codes, n_classes = drawn
    if marker == "list" and 0 in codes.shape:
        return  # an empty list has no second dimension
    marked = MARKERS[marker](codes)
    assert_array_equal(encode_annotations(marked, classes=range(n_classes)).codes, codes)
    found = encode_annotations(marked)
    assert_array_equal(found.classes, np.unique(codes[codes >= 0]))
    assert_array_equal(found.codes >= 0, codes >= 0)
    assert_array_equal(found.classes[found.codes[codes >= 0]], codes[codes >= 0])


@given(annotation_codes())
def test_counts_are_votes(drawn):
    codes, n_classes = drawn
    counts = to_counts(codes, classes=range(n_classes))
    assert_array_equal(counts, naive_counts(codes, n_classes))
    assert counts.sum() == (codes >= 0).sum()


@given(annotation_codes(), st.data())
def test_reordering_rows_and_experts(drawn, data):
    codes, n_classes = drawn
    rows, experts = (data.draw(permutations(n)) for n in codes.shape)
    classes = range(n_classes)
    frame = pd.DataFrame(codes)
    shuffled = encode_annotations(frame.iloc[rows, experts], classes=classes)
    assert_array_equal(shuffled.codes, codes[rows][:, experts])
    assert_array_equal(shuffled.experts, experts)
    assert_array_equal(to_counts(codes[rows][:, experts], classes=classes), to_counts(codes, classes=classes)[rows])


@given(annotation_codes(), st.data())
def test_relabelling_classes(drawn, data):
    codes, n_classes = drawn
    names = data.draw(label_sets(n_classes))
    order = data.draw(permutations(n_classes))
    named = np.where(codes < 0, None, names[order].astype(object)[codes])
    encoded = encode_annotations(named, classes=names)
    assert_array_equal(encoded.codes, np.where(codes < 0, -1, order[codes]))
    counts = to_counts(named, classes=names)
    assert_array_equal(counts[:, order], to_counts(codes, classes=range(n_classes)))


@given(annotation_codes())
def test_an_expert_without_annotations_changes_no_count(drawn):
    codes, n_classes = drawn
    wider = np.column_stack([codes, np.full(len(codes), -1)])
    assert_array_equal(to_counts(wider, classes=range(n_classes)), to_counts(codes, classes=range(n_classes)))


@given(annotation_codes(), st.data())
def test_wide_to_long_and_back(drawn, data):
    codes, n_classes = drawn
    names = data.draw(label_sets(n_classes))
    frame = pd.DataFrame(
        np.where(codes < 0, None, names.astype(object)[codes]),
        index=[f"task {i}" for i in range(len(codes))],
        columns=[f"expert {j}" for j in range(codes.shape[1])],
    )
    table = to_long(frame)
    assert len(table) == (codes >= 0).sum()
    wide = from_long(table)
    rows, columns = (codes >= 0).any(axis=1), (codes >= 0).any(axis=0)
    assert wide.index.tolist() == frame.index[rows].tolist()
    assert wide.columns.tolist() == frame.columns[columns].tolist()
    assert_array_equal(
        encode_annotations(wide, classes=names).codes,
        encode_annotations(frame, classes=names).codes[rows][:, columns],
    )
    pd.testing.assert_frame_equal(to_long(wide), table, check_dtype=False)
    shuffled = table.iloc[data.draw(permutations(len(table)))]
    pd.testing.assert_frame_equal(from_long(shuffled).loc[wide.index], wide, check_dtype=False)


@given(annotation_codes())
def test_long_counts_equal_wide_counts(drawn):
    codes, _ = drawn
    counts = from_long(to_long(codes), duplicates="count")
    expected = anonymize(pd.DataFrame(codes))
    pd.testing.assert_frame_equal(counts, expected[expected.any(axis=1)], check_names=False)


@given(vote_counts(), st.data())
def test_counts_pass_unchanged_and_align_by_name(counts, data):
    n_classes = counts.shape[1]
    read, classes = encode_counts(counts)
    assert_array_equal(read, counts)
    assert_array_equal(classes, np.arange(n_classes))
    names = data.draw(label_sets(n_classes))
    order = data.draw(permutations(n_classes))
    read, classes = encode_counts(pd.DataFrame(counts[:, order], columns=names[order].tolist()))
    assert_array_equal(read, counts)
    assert_array_equal(classes, names)


@given(annotation_codes(min_samples=2), st.data())
def test_anonymized_tables_are_read_as_counts(drawn, data):
    codes, n_classes = drawn
    codes[:2, 0] = 0, 1
    names = data.draw(label_sets(n_classes))
    counts = anonymize(pd.DataFrame(np.where(codes < 0, None, names.astype(object)[codes])))
    read, classes = encode_counts(counts)
    assert_array_equal(read, naive_counts(codes, n_classes)[:, np.unique(codes[codes >= 0])])
    assert_array_equal(classes, names[np.unique(codes[codes >= 0])])


@given(annotation_codes(max_experts=1), st.data())
def test_one_label_per_item_is_one_vote_each(drawn, data):
    codes, n_classes = drawn
    labels = data.draw(label_sets(n_classes).filter(lambda names: names.dtype.kind != "f"))
    position = codes[:, 0] % n_classes
    counts, classes = encode_counts(labels[position], classes=labels)
    assert_array_equal(counts, np.eye(n_classes)[position])
    assert_array_equal(classes, labels)


@given(annotation_codes(), st.booleans(), st.data())
def test_targets_keep_rows_together(drawn, as_frame, data):
    codes, _ = drawn
    n = len(codes)
    annotations = np.column_stack([np.arange(n), codes])
    target = AnnotatedTarget(np.arange(n), pd.DataFrame(annotations) if as_frame else annotations)
    key = data.draw(
        st.one_of(
            st.slices(n),
            st.lists(st.integers(-n, n - 1), max_size=20),
            st.lists(st.booleans(), min_size=n, max_size=n).map(lambda mask: np.array(mask, dtype=bool)),
        )
    )
    key = np.array(key, dtype=np.intp) if isinstance(key, list) else key
    part = target[key]
    assert_array_equal(part, np.arange(n)[key])
    for kept in (part, pickle.loads(pickle.dumps(part)), copy.deepcopy(part), part[:]):
        assert_array_equal(np.asarray(kept.annotations), annotations[key])
