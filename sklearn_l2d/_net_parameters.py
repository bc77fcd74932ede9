"""What the parameters of a net may be: the same in every estimator that trains one."""

import numbers

from ._sklearn import Interval, StrOptions
from ._torch._net import OPTIMIZER_NAMES

NET_CONSTRAINTS = {
    "module": [callable, None],
    "hidden_layer_sizes": ["array-like"],
    "optimizer": [StrOptions(set(OPTIMIZER_NAMES)), callable],
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
