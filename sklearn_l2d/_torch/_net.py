"""The skorch net of all estimators: construction, training and prediction."""

import contextlib
import copy
import math
import numbers
import time

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from skorch import NeuralNet
from skorch.utils import get_map_location
from tqdm.auto import tqdm

from .._sklearn import Interval, StrOptions, warn
from ._batches import Rows, shuffled_batches
from ._modules import ModuleEnsemble, check_layers, check_module
from ._seeding import OwnRandom, own_generator, own_state, resolve_device

_OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
_SETTINGS = "module", "optimizer", "lr", "batch_size", "device"  # of a net, with those of its optimiser
_PREDICT_BATCH, _PREDICT_NUMBERS = 1024, 1 << 24  # rows at once, or as many as need so many numbers in a layer
_LARGEST = 1e12  # output: beyond, float64 cannot tell apart logits that differ by less than 0.0001
_SCALING = "scale the columns of X to similar sizes, for instance with StandardScaler"

# Constraints of the parameters of a net, shared by all estimators that train one.
NET_CONSTRAINTS = {
    "module": [callable, None],
    "hidden_layer_sizes": ["array-like"],
    "optimizer": [StrOptions(set(_OPTIMIZERS)), callable],
    "lr": [Interval(numbers.Real, 0, None, closed="neither")],
    "momentum": [Interval(numbers.Real, 0, 1, closed="left")],
    "weight_decay": [Interval(numbers.Real, 0, None, closed="left")],
    "batch_size": [Interval(numbers.Integral, 1, None, closed="left")],
    "max_epochs": [Interval(numbers.Integral, 1, None, closed="left")],
    "device": [str],
    "dtype": [StrOptions({"float32", "float64"})],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
}


def check_net(params, layers=("hidden_layer_sizes",)):
    """Refuse invalid parameters of a net before other parts are fitted.

    Parameters
    ----------
    params : dict
        Parameters of an estimator.
    layers : tuple of str
        Names of the parameters that hold numbers of hidden units.
    """
    check_module(params.get("module"))
    for name in layers:
        check_layers(params[name], name)
    resolve_device(params["device"])


class Net(NeuralNet):
    """skorch net over `Rows`; a subclass defines the loss in `batch_loss`.

    A pickle or a file of a net holds settings and arrays, from which it is built anew: no tensor, no device, and of a
    module only what is in its `state_dict`.

    Attributes
    ----------
    context : dict
        What `batch_loss` reads; each entry is an attribute, too.
    dtype : torch.dtype
        Floating type of the training.
    random : OwnRandom or None
        Random numbers of the training.
    undecayed : tuple of str
        Patterns of the names of parameters that `weight_decay` spares.
    """

    schedule_ = random = None
    undecayed = ()

    def __getstate__(self):
        return {
            "settings": {
                name: value for name, value in vars(self).items() if name in _SETTINGS or name.startswith("optimizer__")
            },
            "context": self.context,
            "dtype": str(self.dtype).removeprefix("torch."),
            "weights": _as_arrays(self.module_.state_dict()),
            "optimizer_state": _as_arrays(self.optimizer_.state_dict()),
        }

    @own_state()
    def __setstate__(self, state):
        settings, device = state["settings"], state["settings"]["device"]
        device = str(self._check_device(device, get_map_location(device)))  # a net of a GPU goes on without one
        _build(self, settings | {"device": device}, state["dtype"], state["context"], seed=0)
        self.module_.load_state_dict(_as_tensors(state["weights"]))
        self.optimizer_.load_state_dict(_as_tensors(state["optimizer_state"]))

    def batch_loss(self, logits, targets, X):
        """Loss of one batch, a scalar tensor; `targets` are on the device of the net."""
        raise NotImplementedError

    def rows(self, X, *targets):
        """Data set of items and targets in the floating type of the net, on its device if they fit there."""
        return Rows(X, *targets, dtype=self.dtype, device=self.device)

    def frozen(self):
        """The net as it is now, for predictions only: further training does not change it."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), module_=copy.deepcopy(self.module_))
        return other

    def tensor(self, array, dtype=None):
        """An array on the device of the net."""
        if isinstance(array, np.ndarray) and not array.flags.writeable:  # a file that joblib maps into memory
            array = array.copy()
        return torch.as_tensor(array, dtype=dtype, device=self.device)

    def order(self, n):
        """Random permutation of n numbers, during training."""
        return torch.randperm(n, generator=self.generator)

    @property
    def generator(self):
        """Generator of the current training, on the CPU."""
        return self.random.generators["cpu"]

    def at_random(self):
        """Context in which a user's module and optimizer draw from the generator of the training."""
        ours = self.optimizer in _OPTIMIZERS.values()
        return _of_its_own(self.module_, self.random) if ours else self.random

    def train_epoch(self, rows):
        """One pass over `rows` in random order; returns the mean loss and the last batch of items.

        It replaces skorch's loop, whose records and callbacks take as long as an E-step of a small net.
        """
        self.module_.train()
        total, at_random = 0.0, self.at_random()
        for X, targets in shuffled_batches(rows, self.batch_size, self.generator):
            with at_random:
                self.optimizer_.zero_grad()
                loss = self.batch_loss(self.infer(X), [target.to(self.device) for target in targets], X)
                loss.backward()
                self.optimizer_.step()
            if self.schedule_ is not None:
                self.schedule_.step()
            total += loss.detach() * len(X)  # stays on the device, since reading it would wait for every batch
        return float(total) / len(rows), X

    @torch.no_grad()
    def check_batch(self, X):
        """Refuse the net if it answers one batch by what is no number."""
        self.module_.eval()
        outputs = self.infer(X)
        for part in outputs if isinstance(outputs, tuple) else (outputs,):
            if part is not None:  # a module may have more than one output, some of them in some phases only
                check_outputs(part)


class TargetNet(Net):
    """Net trained by cross-entropy with one row of non-negative targets per item; the sum of a row is its weight."""

    def batch_loss(self, logits, targets, X):
        q = targets[0].to(logits.dtype)
        return -(q * logits.log_softmax(-1)).sum() / q.sum().clamp(min=1e-12)


@own_state()
def build_net(kind, module, params, seed, **context):
    """Build a net, with initial weights from its own generator.

    Parameters
    ----------
    kind : type
        `Net` or a subclass.
    module : callable
        Called without arguments, returns the torch module. It is not a module itself, which would be pickled twice.
    params : dict
        Parameters of an estimator: `optimizer` ("sgd", "adam", or a class with the signature of torch optimisers),
        `lr`, `momentum` (for "sgd" only), `weight_decay`, `batch_size`, `dtype` and `device`.
    seed : int
        Seed of the initial weights.
    **context
        Attributes that `batch_loss` reads.
    """
    optimizer = params["optimizer"]
    settings = {
        "module": module,
        "optimizer": _OPTIMIZERS[optimizer] if isinstance(optimizer, str) else optimizer,
        "optimizer__weight_decay": params["weight_decay"],
        "lr": params["lr"],
        "batch_size": params["batch_size"],
        "device": resolve_device(params["device"]),
    }
    if optimizer == "sgd":
        settings["optimizer__momentum"] = params["momentum"]
    if kind.undecayed:
        settings["optimizer__param_groups"] = [(pattern, {"weight_decay": 0.0}) for pattern in kind.undecayed]
    net = object.__new__(kind)
    _build(net, settings, params["dtype"], context, seed)
    return net


def _build(net, settings, dtype, context, seed):
    """Make a new object a net, with initial weights from its own generator."""
    NeuralNet.__init__(
        net,
        criterion=torch.nn.Identity,
        train_split=None,
        predict_nonlinearity=None,
        callbacks="disable",
        verbose=0,
        **settings,
    )
    vars(net).update(context, context=context, dtype=getattr(torch, dtype))
    with OwnRandom(own_generator(seed)):
        net.initialize()
    net.module_.to(net.dtype)


def _as_arrays(state):
    """A state of torch with arrays instead of tensors."""
    return _mapped(state, lambda value: value.numpy(force=True).copy() if isinstance(value, torch.Tensor) else value)


def _as_tensors(state):
    """Inverse of `_as_arrays`; the arrays may be read-only."""
    return _mapped(state, lambda value: torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value)


def _mapped(state, change):
    if isinstance(state, dict):
        return {name: _mapped(value, change) for name, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(_mapped(value, change) for value in state)
    return change(state)


@own_state()
def train(net, rows, n_epochs, *, seed, cosine=True, verbose=0, label="train", on_epoch=None, keep=True):
    """Train for some epochs; after a failure, the net is that of the last complete epoch.

    Parameters
    ----------
    net : Net
        Net, which is trained in place.
    rows : Rows
        Inputs and targets.
    n_epochs : int
        Passes over `rows`.
    seed : int
        Seed of the shuffling and of random operations in the module.
    cosine : bool, default=True
        Whether the learning rate is annealed to zero; otherwise it is constant.
    verbose : int, default=0
        0 is silent, 1 prints a line per epoch, more shows a progress bar.
    label : str, default="train"
        Name of the phase in messages and in the history.
    on_epoch : callable, default=None
        Called with the number of an epoch before it starts; returns the name of the phase. It may change the net.
    keep : bool, default=True
        Whether the result of an interrupted training is kept.

    Returns
    -------
    history : list of dict
        ``{"phase", "loss", "duration"}`` of every epoch.

    Raises
    ------
    FloatingPointError
        If the loss, a weight or an output is not finite. The net is reset to the last good epoch.
    KeyboardInterrupt
        If it is raised before the first epoch is complete, or if `keep` is False; otherwise the training ends with a
        warning.
    """
    history, good = [], _state(net)
    for group in net.optimizer_.param_groups:
        group["lr"] = net.lr
    if cosine:
        n_steps = n_epochs * math.ceil(len(rows) / net.batch_size)
        net.schedule_ = torch.optim.lr_scheduler.CosineAnnealingLR(net.optimizer_, n_steps)
    epochs = tqdm(range(n_epochs), desc=label, disable=verbose < 2)
    net.random = OwnRandom(own_generator(seed))
    try:
        for epoch in epochs:
            if on_epoch is not None:
                label = on_epoch(epoch)
                good = good if _fits(net, good) else _state(net)  # it may have dropped a part
            start = time.perf_counter()
            loss, batch = net.train_epoch(rows)
            duration = time.perf_counter() - start
            if not (np.isfinite(loss) and all(p.isfinite().all() for p in net.module_.parameters())):
                raise FloatingPointError(
                    f"training diverged to a loss of {loss} in epoch {epoch + 1} of the phase {label!r}: lower lr "
                    f"(now {net.lr}), or {_SCALING}."
                )
            if epoch == n_epochs - 1:  # what goes wrong before shows in the next epoch
                net.check_batch(batch)
            history.append({"phase": label, "loss": loss, "duration": duration})
            if verbose == 1:
                print(f"{label} epoch {epoch + 1}/{n_epochs}: loss {loss:.4f}, {duration:.2f} s")
            good = _state(net)
    except KeyboardInterrupt:
        _restore(net, good)
        if not (history and keep):
            raise
        warn(
            f"training was interrupted in the phase {label!r}; the net of epoch {len(history)} of {n_epochs} is kept.",
            ConvergenceWarning,
        )
    except BaseException:
        _restore(net, good)
        raise
    finally:
        net.schedule_ = net.random = None
        epochs.close()
    return history


def _state(net):
    return copy.deepcopy((net.module_.state_dict(), net.optimizer_.state_dict()))


def _fits(net, state):
    """Whether a state is one of the net as it is now: its module has the same parts, of the same sizes."""
    now, then = (
        {name: getattr(v, "shape", None) for name, v in m.items()} for m in (net.module_.state_dict(), state[0])
    )
    return now == then


def _restore(net, state):
    net.module_.load_state_dict(state[0])
    net.optimizer_.load_state_dict(state[1])


def check_outputs(outputs):
    """Refuse outputs of a net, a tensor, that say that its training went wrong although its weights are finite."""
    if not (outputs.abs() < _LARGEST).all():  # NaN is not smaller
        raise FloatingPointError(
            f"a net answers NaN, or beyond {_LARGEST:g}, as it does where training diverges or X is far larger than "
            f"that of the training: lower lr or weight_decay, or {_SCALING}."
        )


def logit_batches(ensemble, X, device):
    """Yield ``(rows, logits)`` for consecutive batches of `X`.

    Parameters
    ----------
    ensemble : torch module
        Ensemble with the attributes `predict_dtype` and `row_size`.
    X : ndarray of shape (n, ...)
        Inputs.
    device : str
        Device of the ensemble.

    Yields
    ------
    rows : slice
        Rows of the batch.
    logits : float64 tensor of shape (K, b, C)
        On the device of the ensemble.

    Raises
    ------
    FloatingPointError
        If a logit is NaN or larger than a logit can mean anything.
    """
    ensemble.eval()
    # One buffer for all batches: a new one for each would leave holes between the results that callers keep, and the
    # process would grow by more than the size of X.
    step = max(1, min(_PREDICT_BATCH, _PREDICT_NUMBERS // ensemble.row_size))
    buffer = torch.empty((min(step, len(X)), *X.shape[1:]), dtype=ensemble.predict_dtype, device="cpu")
    for start in range(0, max(1, len(X)), step):  # X without rows is one empty batch
        rows = slice(start, min(start + step, len(X)))
        batch = buffer[: rows.stop - start].copy_(torch.from_numpy(np.array(X[rows])))
        with own_state(grad=False), _of_its_own(ensemble):
            logits = ensemble(batch.to(device)).double()
        check_outputs(logits)
        yield rows, logits


def predict_batches(ensemble, X, device):
    """Like `logit_batches`, with log-probabilities instead of logits."""
    for rows, logits in logit_batches(ensemble, X, device):
        yield rows, logits.log_softmax(-1)


def predict_logits(net, X, n_outputs=None):
    """Logits (n, n_outputs) of a net of one member, float64, of the first outputs or of all."""
    batches = logit_batches(net.module_.members, X, net.device)
    return np.concatenate([logits[0, :, :n_outputs].contiguous().cpu().numpy() for _, logits in batches])


def predict_log_proba(net, X):
    """Log-probabilities (n, n_outputs) of a net of one member, float64."""
    return np.concatenate([log_p[0].cpu().numpy() for _, log_p in predict_batches(net.module_.members, X, net.device)])


def _of_its_own(module, random=None):
    """Context in which a user's module draws from `random`; by default from a fixed seed, for predictions."""
    if not any(isinstance(part, ModuleEnsemble) for part in module.modules()):
        return contextlib.nullcontext()  # the modules of this package draw nothing but their initial weights
    return OwnRandom(own_generator(0)) if random is None else random
