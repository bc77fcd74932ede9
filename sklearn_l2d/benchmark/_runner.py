"""Run cells on any joblib backend; finished cells are stored in files and not run again."""

import json
import time
from pathlib import Path
from typing import NamedTuple

import joblib
import torch
from threadpoolctl import threadpool_limits
from tqdm import tqdm


class Cell(NamedTuple):
    """One measurement: `experiment` on `dataset` with `size` named annotations, `seed` and `method`."""

    experiment: str
    dataset: str
    size: int
    seed: int
    method: str

    @property
    def job(self):
        """Job of the cell. The cells of a job share a world and run one after another."""
        return self.experiment, self.dataset, self.seed


def run(cells, measure, output, n_jobs, finished_only=False):
    """Measure the cells that are not in the files below `output`.

    Parameters
    ----------
    cells : list of Cell
    measure : callable
        Returns an iterator of dicts of figures for the cells of one job, one for each cell, in order.
    output : Path
        Folder; every job appends to a file of its own, so that workers need no lock.
    n_jobs : int
        Workers, as in joblib.
    finished_only : bool, default=False
        Whether to leave unfinished cells out instead of measuring them. All cells of a seed are left out if one is
        unfinished, so that all methods are compared on the same seeds.

    Returns
    -------
    records : list of dict
        Fields and figures of each cell, in the order of the cells.
    """
    parts = Path(output) / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    done = read_records(parts)
    if finished_only:
        missing = {cell._replace(method=None) for cell in cells if cell not in done}
        return [cell._asdict() | done[cell] for cell in cells if cell._replace(method=None) not in missing]
    jobs = {}
    for cell in cells:
        if cell not in done:
            jobs.setdefault(cell.job, []).append(cell)
    tasks = [joblib.delayed(_run_job)(todo, measure, parts / f"{_slug(job)}.jsonl") for job, todo in jobs.items()]
    if tasks:
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        with tqdm(total=sum(map(len, jobs.values())), desc="cells") as progress:
            for n_cells in parallel(tasks):
                progress.update(n_cells)
    done = read_records(parts)
    return [cell._asdict() | done[cell] for cell in cells]


def read_records(parts):
    """Figures of every cell in a folder of parts; incomplete lines of killed runs are left out."""
    done = {}
    for path in sorted(Path(parts).glob("*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                cell, figures = json.loads(line)
            except json.JSONDecodeError:
                continue
            done[Cell(*cell)] = figures
    return done


def _run_job(cells, measure, path):
    torch.set_num_threads(1)  # small nets: threads of several workers would compete
    with threadpool_limits(1), path.open("a") as file:
        measured = measure(cells)
        for cell in cells:
            start = time.process_time()
            figures = next(measured)
            figures["seconds"] = time.process_time() - start
            file.write("\n" + json.dumps([cell, figures]) + "\n")  # the first break ends an incomplete line
            file.flush()
    return len(cells)


def _slug(job):
    return "-".join("".join(c if c.isalnum() else "_" for c in str(part)) for part in job)
