"""The skorch net that every neural part composes, its training loop and its predictions."""

import copy
import math
import time
import warnings

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from skorch import NeuralNet
from tqdm.auto import tqdm

from ._batches import RowBatches
from ._seeding import seeded

_OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
OPTIMIZER_NAMES = frozenset(_OPTIMIZERS)
_PREDICT_BATCH = 1024  # rows


class Net(NeuralNet):
    """skorch net over `Rows`; a subclass says in `batch_loss` what is learnt from the targets of a batch."""

    schedule_ = None

    @classmethod
    def build(cls, module, *, optimizer, lr, momentum, weight_decay, batch_size, device, **context):
        """Initialised net.

        Parameters
        ----------
        module : callable
            Called without arguments, returns the torch module; never a module itself, which a pickle would hold
            twice.
        optimizer : {"sgd", "adam"} or callable
            Name, or a class with the signature of torch optimisers.
        lr, momentum, weight_decay, batch_size
            As in torch; `momentum` goes to "sgd" only.
        device : str
            Resolved device.
        **context
            Attributes that `batch_loss` reads.
        """
        extra = {"optimizer__momentum": momentum} if optimizer == "sgd" else {}
        net = cls(
            module,
            criterion=torch.nn.Identity,
            optimizer=_OPTIMIZERS[optimizer] if isinstance(optimizer, str) else optimizer,
            optimizer__weight_decay=weight_decay,
            lr=lr,
            batch_size=batch_size,
            iterator_train=RowBatches,
            iterator_train__shuffle=True,
            iterator_valid=RowBatches,
            train_split=None,
            predict_nonlinearity=None,
            callbacks="disable",
            verbose=0,
            device=device,
            **extra,
        )
        vars(net).update(context)
        return net.initialize()

    def batch_loss(self, logits, targets, X):
        """Loss of one batch, a scalar tensor; `targets` are on the device of the net."""
        raise NotImplementedError

    def train_epoch(self, rows):
        """One pass over `rows` in random order; returns the mean loss.

        The loop is not skorch's: its records and callbacks of every batch cost a small net as much as an E-step.
        """
        self.module_.train()
        total = 0.0
        for X, targets in self.get_iterator(rows, training=True):
            self.optimizer_.zero_grad()
            loss = self.batch_loss(self.infer(X), [target.to(self.device) for target in targets], X)
            loss.backward()
            self.optimizer_.step()
            if self.schedule_ is not None:
                self.schedule_.step()
            total += loss.detach() * len(X)  # stays on the device: reading it would wait for every batch
        return float(total) / len(rows)


def train(net, rows, n_epochs, *, seed, cosine=True, verbose=0, label="train", on_epoch=None, keep=True):
    """Train for some epochs; what is left of a failure is the last complete epoch.

    Parameters
    ----------
    net : Net
        Initialised; it is trained in place.
    rows : Rows
        Inputs and targets.
    n_epochs : int
        Passes over `rows`.
    seed : int
        Of the shuffling and of anything random in the module.
    cosine : bool, default=True
        Anneal the learning rate to zero over the call; else it is constant.
    verbose : int, default=0
        0 is silent, 1 prints a line per epoch, more shows a progress bar.
    label : str, default="train"
        Name of the phase in messages and in the history.
    on_epoch : callable, default=None
        Called with the number of each epoch before it starts; returns the name of its phase.
    keep : bool, default=True
        Whether an interrupted training is worth keeping.

    Returns
    -------
    history : list of dict
        ``{"phase", "loss", "duration"}`` of every epoch.

    Raises
    ------
    FloatingPointError
        If the loss or a weight is not finite. The net is put back to its last good epoch.
    KeyboardInterrupt
        If it comes before the first epoch is complete, or without `keep`; else it ends the training with a warning.
    """
    history, good = [], _state(net)
    for group in net.optimizer_.param_groups:
        group["lr"] = net.lr
    if cosine:
        n_steps = n_epochs * math.ceil(len(rows) / net.batch_size)
        net.schedule_ = torch.optim.lr_scheduler.CosineAnnealingLR(net.optimizer_, n_steps)
    epochs = tqdm(range(n_epochs), desc=label, disable=verbose < 2)
    try:
        with seeded(seed, net.device):
            for epoch in epochs:
                if on_epoch is not None:
                    label = on_epoch(epoch)
                start = time.perf_counter()
                loss = net.train_epoch(rows)
                duration = time.perf_counter() - start
                if not (np.isfinite(loss) and all(p.isfinite().all() for p in net.module_.parameters())):
                    raise FloatingPointError(
                        f"training diverged to a loss of {loss} in epoch {epoch + 1} of the phase {label!r}: lower lr "
                        f"(now {net.lr}), or scale the columns of X to similar sizes, for instance with StandardScaler."
                    )
                history.append({"phase": label, "loss": loss, "duration": duration})
                if verbose == 1:
                    print(f"{label} epoch {epoch + 1}/{n_epochs}: loss {loss:.4f}, {duration:.2f} s")
                good = _state(net)
    except KeyboardInterrupt:
        _restore(net, good)
        if not (history and keep):
            raise
        warnings.warn(
            f"training was interrupted in the phase {label!r}; the net of epoch {len(history)} of {n_epochs} is kept.",
            ConvergenceWarning,
            stacklevel=3,
        )
    except BaseException:
        _restore(net, good)
        raise
    finally:
        net.schedule_ = None
        epochs.close()
    return history


def _state(net):
    return copy.deepcopy((net.module_.state_dict(), net.optimizer_.state_dict()))


def _restore(net, state):
    net.module_.load_state_dict(state[0])
    net.optimizer_.load_state_dict(state[1])


def logit_batches(ensemble, X, device):
    """Yield ``(rows, logits)`` for consecutive batches of `X`.

    Parameters
    ----------
    ensemble : torch module
        With the attribute `predict_dtype`.
    X : ndarray of shape (n, ...)
        Inputs.
    device : str
        Where the ensemble is.

    Yields
    ------
    rows : slice
        Rows of the batch.
    logits : float64 tensor of shape (K, b, C)
        On the device of the ensemble.
    """
    ensemble.eval()
    # One buffer for all batches: a fresh one for each leaves holes between the results that callers keep, and the
    # process then grows by more than the whole of X.
    buffer = torch.empty((min(_PREDICT_BATCH, len(X)), *X.shape[1:]), dtype=ensemble.predict_dtype)
    for start in range(0, max(1, len(X)), _PREDICT_BATCH):  # no rows are one empty batch
        rows = slice(start, min(start + _PREDICT_BATCH, len(X)))
        batch = buffer[: rows.stop - start].copy_(torch.from_numpy(np.array(X[rows])))
        with torch.no_grad():
            logits = ensemble(batch.to(device))
        yield rows, logits.double()


def predict_batches(ensemble, X, device):
    """As `logit_batches`, with log-probabilities in the place of logits."""
    for rows, logits in logit_batches(ensemble, X, device):
        yield rows, torch.log_softmax(logits, -1)
