"""What a reader of the package meets, and whether its figures and its threads stay as they were.

    python benchmarks/house.py [TABLE ...] > house.md

`figures` prints five cells of every experiment of the benchmark to the last digit: run it on two checkouts and compare
the outputs. `threads` fits every estimator of the tests' registry that has a net, alone and in four threads at once.
`structure` follows one `ClusterDeferral.fit` through the package and reads the source; `imports` times what
`import sklearn_l2d` costs. The real sets are found through SKLEARN_L2D_DATA.
"""

import ast
import hashlib
import inspect
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from _report import run, table
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import sklearn_l2d
from sklearn_l2d import deferral
from sklearn_l2d.benchmark.__main__ import EXPERIMENTS, build_parser, make_plan
from sklearn_l2d.benchmark._tables import yes
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.datasets import load_digits_crowd

PACKAGE = Path(sklearn_l2d.__file__).parent
sys.path.append(str(PACKAGE.parent / "tests"))
_N_FITS, _N_CELLS, _N_IMPORTS = 12, 5, 5


def figures(seeds):
    """Five cells of every experiment; times are left out, which never repeat."""
    plan = make_plan(build_parser().parse_args(["--quick"]))
    rows = []
    for name, experiment in EXPERIMENTS.items():
        cells = experiment.cells(plan)
        for cell in cells[:: max(1, len(cells) // _N_CELLS)][:_N_CELLS]:
            measured = next(iter(experiment.measure([cell])))
            shown = {figure: value for figure, value in measured.items() if "seconds" not in figure}
            rows.append([name, *cell[1:], ", ".join(f"{k} {to_the_last_digit(v)}" for k, v in shown.items())])
    table("Figures to the last digit", ["experiment", "set", "size", "seed", "method", "figures"], rows)


def to_the_last_digit(value):
    """A number in full, and whatever is larger, such as a matrix of memberships, as the hash of its text."""
    return str(value) if np.isscalar(value) else "sha256 " + hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def threads(seeds):
    """Fits in four threads against the same fits alone."""
    from _instances import INSTANCES, fit, make_crowd, outputs, with_parameter

    crowd, rows = make_crowd(n_samples=120), []
    for instance in with_parameter(INSTANCES, "hidden_layer_sizes"):

        def answers(seed, instance=instance):
            estimator = clone(instance.estimator).set_params(random_state=seed)
            return outputs(instance, fit(instance, estimator, crowd), crowd)

        alone = [answers(seed) for seed in range(_N_FITS)]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(answers, range(_N_FITS)))
        different = sum(
            any(not np.array_equal(a[name], t[name]) for name in a) for a, t in zip(alone, together, strict=True)
        )
        rows.append([type(instance.estimator).__name__, different, yes(different == 0)])
    table(f"{_N_FITS} fits in 4 threads: how many differ from the same fits alone", ["estimator", "differ", "0"], rows)


def structure(seeds):
    """Files, classes and private names that a reader meets."""
    files, pairs = entered_by_a_fit()
    depth = {name: len(package_classes(getattr(deferral, name))) for name in deferral.__all__}
    deepest = max(depth, key=depth.get)
    n_files, private = len(list((PACKAGE / "deferral").glob("*.py"))), private_uses()
    rows = [
        ["files of the package entered by one ClusterDeferral.fit", len(files), 20],
        ["pairs of files, caller and called", len(pairs), 40],
        [f"package classes in the MRO of a deferrer, most ({deepest})", depth[deepest], 5],
        ["files in deferral/", n_files, 25],
        ["uses of private attributes outside of the subpackage that defines them", len(private), 0],
    ]
    table("Structure", ["what", "now", "at most", "reached"], [[*row, yes(row[1] <= row[2])] for row in rows])
    for use in private:
        print(f"- {use}")


def entered_by_a_fit():
    """Files of the package, and pairs of a calling and a called file, in a fit around a frozen clusterer."""
    crowd = load_digits_crowd(random_state=0)
    lda = AnnotatorLDA(max_epochs=2, n_anchor_epochs=1, n_consensus_epochs=1, random_state=0)
    frozen = FrozenEstimator(lda.fit(crowd.X_anonymous, crowd.counts))
    team = deferral.ClusterDeferral(
        frozen, classifier=LogisticRegression(C=0.01), coverage=0.5, max_epochs=2, random_state=0
    )
    files, pairs = set(), set()

    def file_of(frame):
        """Nearest file of the package on the stack, from a frame on."""
        while frame is not None and not frame.f_code.co_filename.startswith(str(PACKAGE)):
            frame = frame.f_back
        return None if frame is None else frame.f_code.co_filename

    def follow(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            called, caller = frame.f_code.co_filename, file_of(frame.f_back)
            files.add(called)
            if caller not in (None, called):
                pairs.add((caller, called))

    sys.setprofile(follow)
    try:
        team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations, X_unlabeled=crowd.X_anonymous)
    finally:
        sys.setprofile(None)
    return files, pairs


def package_classes(kind):
    """Classes of the package among the bases of a class, itself included."""
    return [base for base in inspect.getmro(kind) if base.__module__.startswith("sklearn_l2d")]


def private_uses():
    """Places that read a private attribute of the package which their own subpackage does not define."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
    defined = {}
    for path, tree in trees.items():
        for name in defined_names(tree):
            defined.setdefault(name, set()).add(room_of(path))
    uses = []
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
                homes = defined.get(node.attr, set())
                if homes and room_of(path) not in homes:
                    uses.append(f"{path.relative_to(PACKAGE)}:{node.lineno} {node.attr}")
            elif isinstance(node, ast.ImportFrom) and node.level:
                uses += [
                    f"{path.relative_to(PACKAGE)}:{node.lineno} {alias.name}"
                    for alias in node.names
                    if is_private(alias.name) and not is_module(path, node, alias.name)
                ]
    return uses


def room_of(path):
    """The subpackage that a file belongs to; a file beside the subpackages is a room of its own."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0]


def defined_names(tree):
    """Private names that a module gives to functions, methods, and attributes of `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and is_private(node.name):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_private(node.attr):
            yield node.attr


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def is_own(value):
    """Whether an attribute is read from `self`, `cls` or `super()`."""
    if isinstance(value, ast.Call):
        value = value.func
    return isinstance(value, ast.Name) and value.id in ("self", "cls", "super")


def is_module(path, node, name):
    """Whether an import names a module, which is no attribute."""
    return path.parents[node.level - 1].joinpath(*(node.module or "").split("."), f"{name}.py").exists()


def imports(seeds):
    """CPU seconds of an import in a fresh process, the smallest of several, and whether torch comes along."""
    plain, ours = cpu_of("import sklearn"), cpu_of("import sklearn_l2d")
    _, torch_comes = run_alone("import sklearn_l2d.annotations")
    table(
        "Imports",
        ["what", "now", "at most", "reached"],
        [
            ["CPU seconds of `import sklearn`", plain, "", ""],
            ["CPU seconds of `import sklearn_l2d`", ours, f"{1.2 * plain:.3f}", yes(ours <= 1.2 * plain)],
            ["torch comes with `import sklearn_l2d.annotations`", torch_comes, False, yes(not torch_comes)],
        ],
    )


def cpu_of(statement):
    return min(run_alone(statement)[0] for _ in range(_N_IMPORTS))


def run_alone(statement):
    """CPU seconds of a statement in a process of its own, and whether torch is loaded after it."""
    code = (
        f"import sys, time; start = time.process_time(); {statement}; print(time.process_time() - start); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, torch_comes = done.stdout.split()
    return float(seconds), torch_comes == "True"


if __name__ == "__main__":
    run(
        {"structure": structure, "imports": imports, "threads": threads, "figures": figures},
        "The house: structure, imports, threads and figures",
    )
