"""The public API agrees with what documents it, and packaging files agree with one another."""

import importlib
import importlib.metadata
import inspect
import pkgutil
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from api_reference import API_REFERENCE
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import sklearn_l2d

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PUBLIC_MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(sklearn_l2d.__path__, "sklearn_l2d.")
    if not any(part.startswith("_") for part in info.name.split("."))
)


def exported(module_name):
    return list(getattr(importlib.import_module(module_name), "__all__", []))


def read_constraints():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


@pytest.mark.parametrize("module_name", ["sklearn_l2d", *PUBLIC_MODULES])
def test_all_is_sorted_unique_and_importable(module_name):
    names = exported(module_name)
    module = importlib.import_module(module_name)
    assert names == sorted(set(names))
    assert [name for name in names if not hasattr(module, name)] == []
    assert module.__doc__ or not names


@pytest.mark.parametrize("module_name", ["sklearn_l2d", *PUBLIC_MODULES])
def test_every_name_without_underscore_is_exported(module_name):
    module = importlib.import_module(module_name)
    is_package = hasattr(module, "__path__")
    leaked = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and (is_package or getattr(value, "__module__", None) == module_name)
        and name not in exported(module_name)
    ]
    assert leaked == []


def test_the_reference_lists_every_public_name_once():
    documented = sorted((section["module"], name) for section in API_REFERENCE for name in section["names"])
    assert documented == sorted((module, name) for module in PUBLIC_MODULES for name in exported(module))
    assert len({section["module"] for section in API_REFERENCE}) == len(API_REFERENCE)


def test_top_level_names_are_shortcuts_to_documented_ones():
    documented = {
        name: getattr(importlib.import_module(section["module"]), name)
        for section in API_REFERENCE
        for name in section["names"]
    }
    for name in set(exported("sklearn_l2d")) - {"__version__"}:
        value = getattr(sklearn_l2d, name)
        assert (inspect.ismodule(value) and value.__name__ in PUBLIC_MODULES) or value is documented[name]


def test_the_version_has_one_source():
    assert PYPROJECT["project"]["dynamic"] == ["version"]
    path = PYPROJECT["tool"]["hatch"]["version"]["path"]
    assert runpy.run_path(str(ROOT / path))["__version__"] == sklearn_l2d.__version__
    assert importlib.metadata.version("sklearn_l2d") == sklearn_l2d.__version__, "install the package again"


def test_constraints_are_exact_sorted_and_meet_pyproject():
    pins = read_constraints()
    assert list(pins) == sorted(pins)
    assert [name for name in pins if name != canonicalize_name(name)] == []
    project = PYPROJECT["project"]
    for group in [project["dependencies"], *project["optional-dependencies"].values()]:
        for requirement in map(Requirement, group):
            assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement


def test_ruff_is_pinned_to_one_version():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert f"rev: v{read_constraints()['ruff']} " in hooks


def test_what_is_imported_with_the_package():
    code = (
        "import sys; sys.modules['pandas'] = sys.modules['matplotlib'] = None; import sklearn_l2d.annotations; "
        "assert 'torch' not in sys.modules; assert set(sklearn_l2d.__all__) == set(dir(sklearn_l2d)); "
        "assert sklearn_l2d.AnnotatorLDA is sklearn_l2d.cluster.AnnotatorLDA; assert 'torch' in sys.modules; "
        f"import {', '.join(PUBLIC_MODULES)}"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = sklearn_l2d.nothing


def test_the_type_marker_is_there():
    assert (Path(sklearn_l2d.__file__).parent / "py.typed").is_file()


def test_no_machine_paths_in_tracked_files():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("not a git checkout")
    pattern = re.compile(r"(?<![\w.])/(?:home|root|tmp|work|Users)/", re.ASCII)
    offending = []
    for name in filter(None, listing.stdout.split("\0")):
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):  # binary, or deleted but not yet committed
            continue
        offending += [f"{name}: {line.strip()}" for line in text.splitlines() if pattern.search(line)]
    assert offending == []
