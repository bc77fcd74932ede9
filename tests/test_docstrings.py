"""Every example in the documentation runs, and every public object is documented in numpydoc form."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from api_reference import API_REFERENCE

ROOT = Path(__file__).parents[1]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def with_examples(folder, pattern):
    """Files below the folder that hold an interactive example, found without importing anything."""
    files = (ROOT / folder).glob(pattern)
    return sorted(file.relative_to(ROOT).as_posix() for file in files if ">>> " in file.read_text(encoding="utf-8"))


# Errors of numpydoc.validate that count: a missing, misnamed or misplaced piece. Matters of taste do not.
ERRORS = {
    "GL05",  # tabs
    "GL06",  # unknown section
    "GL07",  # sections out of order
    "GL08",  # no docstring
    "SS01",  # no summary
    "SS03",  # summary without a full stop
    "PR01",  # a parameter is not documented
    "PR02",  # a documented parameter does not exist
    "PR03",  # parameters out of order
    "PR07",  # a parameter has no description
    "PR10",  # no space before the colon
    "RT01",  # no Returns
    "RT03",  # a returned value has no description
}


def public_objects():
    """Names of the public classes and functions and of their public methods, with "needs an example"."""
    found = []
    for section in API_REFERENCE:
        module = importlib.import_module(section["module"])
        for name in section["names"]:
            value = getattr(module, name)
            if inspect.isclass(value) and issubclass(value, tuple):
                continue  # a record: its fields are attributes, its example is where it is returned
            found.append((f"{section['module']}.{name}", True))
            if inspect.isclass(value):
                found += [(f"{section['module']}.{name}.{method}", False) for method in own_methods(value)]
    return found


def own_methods(cls):
    """Public methods written in this package, without those that stand in for a method of numpy's arrays."""
    return sorted(
        name
        for name, value in inspect.getmembers(cls, callable)
        if not name.startswith("_")
        and not re.fullmatch(r"set_\w+_request", name)
        and not (issubclass(cls, np.ndarray) and hasattr(np.ndarray, name))
        and getattr(value, "__module__", "").startswith("sklearn_l2d")
    )


def fail_on(results, name):
    assert results.attempted > 0, f"{name} has no examples any more"
    assert results.failed == 0, f"{results.failed} of {results.attempted} examples fail in {name}"


@pytest.mark.parametrize("file", with_examples("sklearn_l2d", "**/*.py"))
def test_examples_in_docstrings(file):
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    fail_on(doctest.testmod(importlib.import_module(name), optionflags=FLAGS), name)


@pytest.mark.parametrize("page", with_examples("doc", "*.rst") + with_examples("doc/user_guide", "*.rst"))
def test_examples_in_pages(page):
    fail_on(doctest.testfile(str(ROOT / page), module_relative=False, optionflags=FLAGS), page)


def test_example_in_readme(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert (names["labels"] == names["crowd"].y_test).mean() > 0.97
    assert len(capsys.readouterr().out.splitlines()) == len(names["crowd"].experts)
    # The experts come in pairs, from those who err least to those who err most, and the text says so.
    agreement = names["membership"][:, 0].reshape(3, 2).mean(axis=1)
    assert agreement[0] > agreement[1] > agreement[2]


@pytest.mark.parametrize(("name", "needs_example"), public_objects())
def test_numpydoc(name, needs_example):
    validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is in the extra named doc").validate
    wanted = ERRORS | ({"EX01"} if needs_example else set())
    errors = [f"{code}: {message}" for code, message in validate(name)["errors"] if code in wanted]
    assert errors == []
