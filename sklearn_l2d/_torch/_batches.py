"""Mini-batches of row-aligned arrays, taken as slices of a batch instead of single rows."""

import numpy as np
import torch
from torch.utils.data import Dataset

from .._numerics._matrices import is_small, ragged_rows

_RESIDENT_SHARE = 0.25  # largest share of the free memory of a CUDA device for the rows of a data set
_BLOCK = 1 << 26  # bytes per copy to a device
_AT_ONCE = 1 << 18  # bytes of rows that are taken together, for as many batches as they are


class AnswerTable:
    """Table (n, B + M + A) of what answers are worth, made of votes for a few rows at a time.

    Parameters
    ----------
    votes : Votes
        n items, M annotators.
    worth : ndarray of shape (n_answers,)
        Entries of the answers, of any type.
    absent : number
        Entry where there is no answer.
    before, after : ndarrays of shape (n, B) and (n, A), default=None
        Further columns on either side.
    """

    def __init__(self, votes, worth, absent, before=None, after=None):
        nothing = np.empty((len(votes), 0), dtype=worth.dtype)
        self.starts, self.annotator, self.n_annotators = votes.starts, votes.annotator, votes.shape[1]
        self.worth, self.absent = worth, absent
        self.before, self.after = (nothing if part is None else part for part in (before, after))

    @property
    def shape(self):
        """Shape of the table."""
        return len(self), self.before.shape[1] + self.n_annotators + self.after.shape[1]

    @property
    def nbytes(self):
        """Bytes of the whole table."""
        return self.shape[0] * self.shape[1] * self.worth.itemsize

    def __len__(self):
        return len(self.starts) - 1

    def __getitem__(self, rows):
        """Array of some rows: a slice or positions."""
        before, after = self.before[rows], self.after[rows]
        people = np.full((len(before), self.n_annotators), self.absent, dtype=self.worth.dtype)
        row, answer = ragged_rows(self.starts, rows)
        people[row, self.annotator[answer]] = self.worth[answer]
        return np.hstack([part.astype(people.dtype, copy=False) for part in (before, people, after)])

    def if_large(self):
        """The table, as an array where that is small, which is faster."""
        return self[:] if is_small(self.shape) else self


class AnswerRows:
    """Answers to the items of a batch, which are as many as people gave.

    Parameters
    ----------
    votes : Votes
        n items.
    """

    def __init__(self, votes):
        self.starts, self.annotator, self.label = votes.starts, votes.annotator, votes.label

    @property
    def nbytes(self):
        """Bytes of all answers."""
        return 24 * len(self.label)

    def __len__(self):
        return len(self.starts) - 1

    def __getitem__(self, rows):
        """Array (A, 3) of the row among the selected ones, the annotator and the class of every answer."""
        row, answer = ragged_rows(self.starts, rows)
        return np.stack(self._columns(row, answer), dtype=np.int64).T  # columns are contiguous

    def batches(self, rows, batch_size):
        """Arrays as above of batches of some rows, made together, which takes less time than one by one."""
        answers = self[rows]
        ends = np.searchsorted(answers[:, 0], np.arange(batch_size, len(rows), batch_size))
        answers[:, 0] %= batch_size
        return np.split(answers, ends)

    def _columns(self, row, answer):
        return row, self.annotator[answer], self.label[answer]


class RowTable:
    """Table (n, J) whose rows are computed when they are asked for, by `np.asarray` of some of them.

    Parameters
    ----------
    make : callable
        Returns the array of some rows of the whole table: a slice or positions.
    shape : tuple of int
        Of the whole table.
    rows : ndarray of int, default=None
        Positions of the rows in the whole table. None stands for all.
    """

    def __init__(self, make, shape, rows=None):
        self.make, self.whole, self.rows = make, shape, rows

    @property
    def shape(self):
        """Shape of the table."""
        return len(self), self.whole[1]

    @property
    def nbytes(self):
        """Bytes of the table as an array of float64."""
        return 8 * self.shape[0] * self.shape[1]

    def __len__(self):
        return self.whole[0] if self.rows is None else len(self.rows)

    def __getitem__(self, rows):
        """Some rows, which are not computed yet: a slice or positions."""
        if self.rows is not None:
            rows = self.rows[rows]
        elif isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        return RowTable(self.make, self.whole, rows)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.make(slice(None) if self.rows is None else self.rows), dtype=dtype)


class Rows(Dataset):
    """Arrays with one entry per row; indexing by an array of rows returns a batch.

    Parameters
    ----------
    X : ndarray of shape (n, ...)
        Inputs; a memory map is read batch by batch.
    *targets : ndarrays of shape (n, ...), AnswerTables, AnswerRows or RowTables
        Targets that the loss needs for each row.
    dtype : torch.dtype
        Floating type of the batches of `X`.
    device : str, default="cpu"
        Device of the net. The rows are copied to a CUDA device once if they need at most a quarter of its free memory.
    """

    def __init__(self, X, *targets, dtype, device="cpu"):
        self.arrays = (X, *targets)
        self.dtype = dtype
        if str(device).startswith("cuda") and not any(isinstance(a, AnswerRows) for a in self.arrays):
            size = sum(a.nbytes for a in self.arrays)
            if size < _RESIDENT_SHARE * torch.cuda.mem_get_info(device)[0]:
                self.arrays = tuple(on_device(a, device) for a in self.arrays)

    def set_target(self, target, index=0):
        """Replace one of the targets, for instance after an E-step."""
        place = self.arrays[1 + index]
        if isinstance(place, torch.Tensor):
            target = on_device(target, place.device)
        self.arrays = (*self.arrays[: 1 + index], target, *self.arrays[2 + index :])

    def __len__(self):
        return len(self.arrays[0])

    def __getitem__(self, rows):
        return next(self.batches(rows, max(1, len(rows))))

    def batches(self, rows, batch_size):
        """Yield the batches of some rows in their order; where rows are small, several batches are taken at once."""
        row_bytes = sum(a.nbytes for a in self.arrays) // max(1, len(self))
        at_once = max(1, _AT_ONCE // max(1, row_bytes * batch_size))
        for block in rows.split(batch_size * at_once):
            for X, *targets in zip(*(self._split(a, block, batch_size) for a in self.arrays), strict=True):
                yield self.batch(X, targets)

    def batch(self, X, targets):
        """What the net is given of a batch; subclasses add to it."""
        return X.to(self.dtype), tuple(targets)

    @staticmethod
    def _split(array, rows, batch_size):
        if isinstance(array, torch.Tensor):
            return array[rows.to(array.device)].split(batch_size)
        if isinstance(array, AnswerRows):
            return [torch.from_numpy(answers) for answers in array.batches(rows.numpy(), batch_size)]
        return torch.from_numpy(np.asarray(array[rows.numpy()])).split(batch_size)


def on_device(array, device):
    """Copy an array to a device block by block, so that a memory map is never in memory as a whole."""
    step = max(1, _BLOCK // max(1, array[:1].nbytes))
    first = torch.from_numpy(np.array(array[:step]))
    copy = torch.empty(array.shape, dtype=first.dtype, device=device)
    copy[:step] = first
    for start in range(step, len(array), step):
        copy[start : start + step] = torch.from_numpy(np.array(array[start : start + step]))
    return copy


def shuffled_batches(rows, batch_size, generator):
    """Yield the batches of a `Rows` data set in random order.

    It replaces torch's DataLoader, which collates single rows; this takes longer than a training step of a small net.
    """
    yield from rows.batches(torch.randperm(len(rows), generator=generator), batch_size)
