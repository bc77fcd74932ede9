"""Readers: the form of the result, and files that must be refused, on small files made here."""

import numpy as np
import pytest

from sklearn_l2d.datasets import _crowd, list_crowds, load_crowd


def fake(name, tmp_path):
    """Write files of the published sizes with random content; returns the arrays of the main file."""
    rng = np.random.default_rng(0)
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)

    def save(file, **arrays):
        np.savez(folder / file, **arrays)
        return arrays

    def entries(n, m, length, n_classes, dtype=np.int8):
        return {
            "ann_item": rng.integers(n, size=length).astype(np.int16),
            "ann_annotator": rng.integers(m, size=length).astype(np.int16),
            "ann_label": rng.integers(n_classes, size=length).astype(dtype),
        }

    def codes(n, n_classes, dtype=np.int8):
        return rng.integers(n_classes, size=n).astype(dtype)

    if name == "labelme":
        return save(
            "labelme.npz",
            X=rng.standard_normal((2688, 3)).astype(np.float16),
            y=codes(2688, 8),
            split=codes(2688, 3),
            classes=np.array(list("abcdefgh")),
            **entries(2688, 59, 2547, 8),
        )
    if name == "hate_offensive":
        counts = rng.multinomial(3, [0.2, 0.3, 0.5], size=24783).astype(np.uint8)
        counts[:6034, 0] += 1  # 80,383 votes in all
        return save("hate_offensive.npz", X=np.zeros((24783, 1)), y=codes(24783, 3), counts=counts)
    if name == "chaoyang":
        return save(
            "chaoyang.npz",
            y=codes(6160, 4),
            labels=rng.integers(4, size=(6160, 3)).astype(np.int8),
            annotator_names=np.array(list("ABC")),
        )
    if name == "chexpert_readers":
        return save(
            "chexpert_readers.npz",
            y=rng.integers(2, size=(500, 2)),
            labels=rng.integers(2, size=(500, 8, 2)),
            findings=np.array(["Lung Lesion", "Edema"]),
            annotator_names=np.arange(8).astype(str),
            model_probs=rng.random((500, 3, 2)),
            model_names=np.array(list("abc")),
            model_findings=np.array(["Edema", "Other"]),
        )
    if name == "nih_readers":
        arrays = entries(4376, 22, 14_000, 2)
        label = np.stack([np.full(14_000, 2), arrays.pop("ann_label")], axis=1).astype(np.int8)
        label[13_077:, 1] = 2  # hedges beyond the published number of answers
        return save(
            "nih_readers.npz",
            y=rng.integers(2, size=(4376, 2)),
            findings=np.array(["other", "airspace_opacity"]),
            patient=codes(4376, 100),
            ann_seconds=np.arange(14_000),
            ann_label=label,
            **arrays,
        )
    if name == "cifar100n":
        arrays = entries(1, 519, 50_000, 100, np.uint8)
        del arrays["ann_item"]
        return save(
            "cifar100n.npz",
            y=codes(50_000, 100, np.uint8),
            y_coarse=codes(50_000, 20, np.uint8),
            ann_label_coarse=codes(50_000, 20, np.uint8),
            fine_to_coarse=np.repeat(np.arange(20), 5),
            **arrays,
        )
    if name == "cifar10":
        test_counts = rng.multinomial(51, np.full(10, 0.1), size=10_000).astype(np.uint8)
        test_counts[:1000, 0] += 1  # 511,000 votes in all
        save("features_efficientnet_lite2.npz", X_train=np.zeros((50_000, 1)), X_test=np.ones((10_000, 1)))
        return save(
            "labels.npz",
            y_train=codes(50_000, 10, np.uint8),
            y_test=codes(10_000, 10, np.uint8),
            train_labels=rng.integers(10, size=(50_000, 3)).astype(np.uint8),
            train_worst=codes(50_000, 10, np.uint8),
            test_counts=test_counts,
            classes=np.arange(10).astype(str),
        )
    if name == "medical_relation":
        chosen = rng.integers(2, size=(48_868, 3)).astype(np.int8)
        arrays = entries(3984, 466, 48_868, 2)
        del arrays["ann_label"]
        return save(
            "medical_relation.npz",
            y_cause=codes(3984, 2),
            y_treat=codes(3984, 2),
            ann_relations=chosen,
            relations=np.array(["CAUSES", "NONE", "TREATS"]),
            **arrays,
        )
    if name == "recidivism":
        for file, m in (("annotators_df.csv", 102), ("annotators_df_violent.csv", 108)):
            rows = "".join(f"{i},{'f' if i % 2 else 'm'},{20 + i}\n" for i in range(m))
            (folder / file).write_text("annotator,gender,age\n" + rows)
        violent = {f"violent_{key}": value for key, value in entries(7214, 108, 5400, 2).items()}
        plain = entries(7214, 102, 5100, 2)
        return save(
            "compas.npz",
            X=np.zeros((7214, 2)),
            y=codes(7214, 2),
            y_violent=codes(7214, 2),
            **violent,
            **plain,
        )
    if name == "chaosnli":
        counts = np.tile(np.array([50, 30, 20], dtype=np.uint8), (3113, 1))
        logits = rng.standard_normal((3113, 3, 3))
        logits[5:35] = np.nan
        return save(
            "chaosnli.npz",
            counts=counts,
            counts_original=counts // 20,
            y=codes(3113, 3),
            source=codes(3113, 2),
            X_premise=rng.standard_normal((3113, 2)).astype(np.float16),
            X_hypothesis=rng.standard_normal((3113, 2)).astype(np.float16),
            roberta_logits=logits,
        )
    raise AssertionError(name)


def check_form(crowd):
    """What every set promises, whatever it holds."""
    n, n_classes = len(crowd.y), len(crowd.target_names)
    assert crowd.counts.shape == (n, n_classes)
    assert crowd.counts.dtype == np.int32
    assert crowd.y.dtype == np.intp
    assert crowd.X is None or (crowd.X.dtype == np.float32 and len(crowd.X) == n)
    assert crowd.split is None or (len(crowd.split) == n and crowd.split.max() < len(crowd.split_names))
    if crowd.ann_item is None:
        assert crowd.annotations is crowd.ann_annotator is crowd.ann_label is None
        return
    votes = np.zeros_like(crowd.counts)
    np.add.at(votes, (crowd.ann_item, crowd.ann_label), 1)
    np.testing.assert_array_equal(votes, crowd.counts)
    # A cell names the last label of its pair, and no other cell is filled.
    last = dict(zip(zip(crowd.ann_item, crowd.ann_annotator, strict=True), crowd.ann_label, strict=True))
    cells = np.argwhere(crowd.annotations != -1)
    assert len(cells) == len(last)
    assert all(crowd.annotations[i, m] == last[i, m] for i, m in cells[:: max(1, len(cells) // 500)])
    assert crowd.annotations.itemsize == 1


FAKES = {
    "labelme": "labelme",
    "hate_offensive": "hate_offensive",
    "chaoyang": "chaoyang",
    "chexpert_readers_edema": "chexpert_readers",
    "nih_readers_airspace_opacity": "nih_readers",
    "cifar100n": "cifar100n",
    "cifar100n_coarse": "cifar100n",
    "cifar10": "cifar10",
    "medical_relation_treat": "medical_relation",
    "recidivism_compas": "recidivism",
    "recidivism_compas_violent": "recidivism",
    "chaosnli": "chaosnli",
    "chaosnli_logits": "chaosnli",
}


@pytest.mark.parametrize("name", FAKES)
def test_every_layout_takes_one_form(name, tmp_path):
    fake(FAKES[name], tmp_path)
    crowd = load_crowd(name, data_home=tmp_path)
    check_form(crowd)
    assert crowd.name == name


def test_labels_stay_what_the_file_says(tmp_path):
    arrays = fake("labelme", tmp_path)
    crowd = load_crowd("labelme", data_home=tmp_path)
    np.testing.assert_array_equal(crowd.X, arrays["X"].astype(np.float32))
    for key in ("y", "split", "ann_item", "ann_annotator", "ann_label"):
        np.testing.assert_array_equal(crowd[key], arrays[key])
    assert crowd.target_names.tolist() == list("abcdefgh")
    assert crowd.split_names == ("train", "validation", "test")
    assert crowd.annotator_names is crowd.feature_names is None


def test_one_column_of_several_findings(tmp_path):
    arrays = fake("chexpert_readers", tmp_path)
    crowd = load_crowd("chexpert_readers_edema", data_home=tmp_path)
    np.testing.assert_array_equal(crowd.annotations, arrays["labels"][:, :, 1])
    np.testing.assert_array_equal(crowd.y, arrays["y"][:, 1])
    assert crowd.X.shape == (500, 6)
    with pytest.raises(ValueError, match=r"Lung Lesion.*not 'fracture'"):
        load_crowd("chexpert_readers_fracture", data_home=tmp_path)


def test_hedges_are_no_labels(tmp_path):
    fake("nih_readers", tmp_path)
    crowd = load_crowd("nih_readers_airspace_opacity", data_home=tmp_path)
    assert len(crowd.ann_label) == 13_077
    assert set(crowd.ann_label) == {0, 1}
    np.testing.assert_array_equal(crowd.ann_seconds, np.arange(13_077))  # what belongs to labels is cut alike
    assert len(crowd.patient) == 4376


def test_cifar10_stacks_train_and_test(tmp_path):
    arrays = fake("cifar10", tmp_path)
    crowd = load_crowd("cifar10", data_home=tmp_path)
    train, test = crowd.split == 0, crowd.split == 1
    np.testing.assert_array_equal(crowd.X[:, 0], test)
    np.testing.assert_array_equal(crowd.y[test], arrays["y_test"])
    np.testing.assert_array_equal(crowd.counts[test], arrays["test_counts"])
    assert (crowd.counts[train].sum(axis=1) == 3).all()
    first = [(arrays["train_labels"][0] == c).sum() for c in range(10)]
    np.testing.assert_array_equal(crowd.counts[0], first)
    assert len(crowd.train_worst) == 50_000


def test_tasks_of_one_source_differ_in_truth_and_people(tmp_path):
    arrays = fake("recidivism", tmp_path)
    plain, violent = (load_crowd(f"recidivism_compas{suffix}", data_home=tmp_path) for suffix in ("", "_violent"))
    np.testing.assert_array_equal(plain.y, arrays["y"])
    np.testing.assert_array_equal(plain.ann_label, arrays["ann_label"])
    np.testing.assert_array_equal(violent.y, arrays["y_violent"])
    np.testing.assert_array_equal(violent.ann_label, arrays["violent_ann_label"])
    assert plain.annotator_gender[:3].tolist() == ["m", "f", "m"]
    assert violent.annotator_age[107] == 127

    arrays = fake("medical_relation", tmp_path)
    treat = load_crowd("medical_relation_treat", data_home=tmp_path)
    np.testing.assert_array_equal(treat.ann_label, arrays["ann_relations"][:, 2])
    np.testing.assert_array_equal(treat.y, arrays["y_treat"])

    arrays = fake("cifar100n", tmp_path)
    coarse = load_crowd("cifar100n_coarse", data_home=tmp_path)
    np.testing.assert_array_equal(coarse.ann_label, arrays["ann_label_coarse"])
    np.testing.assert_array_equal(coarse.y_fine, arrays["y"])


def test_chaosnli_features(tmp_path):
    arrays = fake("chaosnli", tmp_path)
    u, v = (arrays[key].astype(float) for key in ("X_premise", "X_hypothesis"))
    crowd = load_crowd("chaosnli", data_home=tmp_path)
    np.testing.assert_allclose(crowd.X, np.c_[u, v, abs(u - v), u * v], rtol=1e-5, atol=1e-6)
    logits = load_crowd("chaosnli_logits", data_home=tmp_path)
    kept = np.r_[:5, 35:3113]
    np.testing.assert_allclose(logits.X, arrays["roberta_logits"][kept].reshape(-1, 9), rtol=1e-6)
    np.testing.assert_array_equal(logits.y, arrays["y"][kept])


def test_no_wide_table_above_the_limit(tmp_path, monkeypatch):
    fake("labelme", tmp_path)
    monkeypatch.setattr(_crowd, "_WIDE_LIMIT", 2688 * 59 - 1)
    assert load_crowd("labelme", data_home=tmp_path).annotations is None


def test_description_is_the_readme(tmp_path):
    fake("chaoyang", tmp_path)
    assert "chaoyang.npz" in load_crowd("chaoyang", data_home=tmp_path).DESCR
    (tmp_path / "chaoyang" / "README.md").write_text("Patches of the colon.", encoding="utf-8")
    assert load_crowd("chaoyang", data_home=tmp_path).DESCR == "Patches of the colon."


def test_where_data_are_looked_for(tmp_path, monkeypatch):
    for variable in ("SKLEARN_L2D_DATA", "SCIKIT_LEARN_DATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    with pytest.raises(FileNotFoundError) as caught:
        load_crowd("chaoyang")
    assert str(tmp_path / "cache" / "sklearn_l2d" / "chaoyang" / "chaoyang.npz") in str(caught.value)
    assert "SKLEARN_L2D_DATA" in str(caught.value)
    assert list(tmp_path.iterdir()) == []  # looking creates nothing

    fake("chaoyang", tmp_path)
    monkeypatch.setenv("SKLEARN_L2D_DATA", str(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    assert len(load_crowd("chaoyang").y) == 6160
    assert sorted(tmp_path.rglob("*")) == before


def test_unknown_name_suggests_known_ones():
    with pytest.raises(ValueError, match="cue_conflict"):
        load_crowd("cue-conflict")
    assert len(list_crowds()) == len(set(list_crowds())) >= 50


@pytest.mark.parametrize("keep", [0, 20, 0.5, 0.99])
def test_truncated_file(tmp_path, keep):
    fake("labelme", tmp_path)
    path = tmp_path / "labelme" / "labelme.npz"
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if keep < 1 else keep])
    with pytest.raises(ValueError, match=r"labelme\.npz is damaged"):
        load_crowd("labelme", data_home=tmp_path)


def test_flipped_bytes_and_other_kinds_of_file(tmp_path):
    fake("labelme", tmp_path)
    path = tmp_path / "labelme" / "labelme.npz"
    content = bytearray(path.read_bytes())
    content[5000] ^= 255
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="damaged"):
        load_crowd("labelme", data_home=tmp_path)
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="damaged"):
        load_crowd("labelme", data_home=tmp_path)
    np.savez(path, X=np.array([{}]))
    with pytest.raises(ValueError, match="damaged"):
        load_crowd("labelme", data_home=tmp_path)


@pytest.mark.parametrize("key", ["X", "y", "split", "ann_item", "ann_annotator", "ann_label", "classes"])
def test_arrays_of_unequal_length(tmp_path, key):
    arrays = fake("labelme", tmp_path)
    np.savez(tmp_path / "labelme" / "labelme.npz", **(arrays | {key: arrays[key][:-1]}))
    with pytest.raises(ValueError, match=r"labelme\.npz: array '.*' has \d+ rows, not \d+"):
        load_crowd("labelme", data_home=tmp_path)


def test_consistent_but_too_short(tmp_path):
    arrays = fake("labelme", tmp_path)
    short = {key: arrays[key][:-9] for key in arrays if key.startswith("ann_")}
    np.savez(tmp_path / "labelme" / "labelme.npz", **(arrays | short))
    with pytest.raises(ValueError, match="2538 labels instead of 2547"):
        load_crowd("labelme", data_home=tmp_path)
    arrays = fake("hate_offensive", tmp_path)
    for counts, message in ((arrays["counts"][:, :2], "3 columns"), (arrays["counts"] + 1, "labels instead")):
        np.savez(tmp_path / "hate_offensive" / "hate_offensive.npz", **(arrays | {"counts": counts}))
        with pytest.raises(ValueError, match=message):
            load_crowd("hate_offensive", data_home=tmp_path)


@pytest.mark.parametrize(
    ("key", "code"), [("ann_item", 2688), ("ann_annotator", 59), ("ann_label", 8), ("y", -2), ("y", 8)]
)
def test_codes_out_of_range(tmp_path, key, code):
    arrays = fake("labelme", tmp_path)
    arrays[key][3] = code
    np.savez(tmp_path / "labelme" / "labelme.npz", **arrays)
    with pytest.raises(ValueError, match=f"'{key}' holds codes outside"):
        load_crowd("labelme", data_home=tmp_path)


@pytest.mark.parametrize(("name", "key"), [("labelme", "y"), ("labelme", "ann_label"), ("chaoyang", "labels")])
def test_missing_array(tmp_path, name, key):
    arrays = fake(name, tmp_path)
    np.savez(tmp_path / name / f"{name}.npz", **{k: v for k, v in arrays.items() if k != key})
    with pytest.raises(ValueError, match=f"lacks the array '{key}'"):
        load_crowd(name, data_home=tmp_path)


@pytest.mark.parametrize("damage", ["", "annotator,gender,age\n0,m,20\n2,f,30\n", "annotator,gender,age\n0,m\n"])
def test_damaged_table_of_annotators(tmp_path, damage):
    fake("recidivism", tmp_path)
    (tmp_path / "recidivism" / "annotators_df.csv").write_text(damage)
    with pytest.raises(ValueError, match=r"annotators_df\.csv is damaged"):
        load_crowd("recidivism_compas", data_home=tmp_path)


def test_too_few_annotators_in_the_table(tmp_path):
    fake("recidivism", tmp_path)
    (tmp_path / "recidivism" / "annotators_df.csv").write_text("annotator,gender\n0,m\n1,f\n")
    with pytest.raises(ValueError, match="'annotator_gender' has 2 rows, not 102"):
        load_crowd("recidivism_compas", data_home=tmp_path)
