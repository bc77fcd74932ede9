"""Cells that are finished are kept, and nothing is measured twice."""

import json

import pytest

from sklearn_l2d.benchmark._runner import Cell, read_records, run


def cells(*seeds):
    return [Cell("a", "b", 5, seed, method) for seed in seeds for method in ("one", "two")]


def measure(todo):
    for cell in todo:
        yield {"value": cell.seed + (cell.method == "two") / 2}


def refuse(todo):
    raise AssertionError(f"measured again: {todo}")
    yield


def test_records_come_in_the_order_of_the_cells(tmp_path):
    records = run(cells(3, 1), measure, tmp_path, 1)
    assert [(r["seed"], r["method"], r["value"]) for r in records] == [
        (3, "one", 3.0), (3, "two", 3.5), (1, "one", 1.0), (1, "two", 1.5)
    ]  # fmt: skip
    assert all(r["seconds"] >= 0 for r in records)


def test_finished_cells_are_not_run_again(tmp_path):
    first = run(cells(0), measure, tmp_path, 1)
    assert run(cells(0), refuse, tmp_path, 1) == first


def test_an_interrupted_job_goes_on_where_it_was(tmp_path):
    def stop_after_one(todo):
        yield from list(measure(todo))[:1]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(cells(0), stop_after_one, tmp_path, 1)
    seen = []

    def count(todo):
        seen.extend(todo)
        return measure(todo)

    records = run(cells(0), count, tmp_path, 1)
    assert [c.method for c in seen] == ["two"]
    assert [r["value"] for r in records] == [0.0, 0.5]


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    (whole, cut) = (json.dumps([cell, {"value": 1}]) for cell in cells(0))
    (tmp_path / "x.jsonl").write_text(f"\n{whole}\n\n{cut[:-9]}")
    assert list(read_records(tmp_path)) == cells(0)[:1]


def test_workers_share_nothing(tmp_path):
    alone = run(cells(0, 1, 2), measure, tmp_path / "alone", 1)
    together = run(cells(0, 1, 2), measure, tmp_path / "together", 2)
    assert [r["value"] for r in together] == [r["value"] for r in alone]


def test_only_what_is_finished_can_be_reported(tmp_path):
    run(cells(0), measure, tmp_path, 1)
    records = run(cells(0, 1), refuse, tmp_path, 1, finished_only=True)
    assert [(r["seed"], r["method"]) for r in records] == [(0, "one"), (0, "two")]


def test_a_seed_that_lacks_a_method_is_not_reported(tmp_path):
    run([*cells(0), cells(1)[0]], measure, tmp_path, 1)
    records = run(cells(0, 1), refuse, tmp_path, 1, finished_only=True)
    assert {r["seed"] for r in records} == {0}
