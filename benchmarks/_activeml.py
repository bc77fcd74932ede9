"""Run a method of scikit-activeml in an environment of its own: `python _activeml.py METHOD TRAINING SOURCE TARGET`.

SOURCE holds items, votes and new items; the accuracy is judged by whoever reads the labels from TARGET.
"""

import sys
import warnings

import numpy as np
import torch
from skactiveml.classifier import multiannotator

TRAININGS = {
    "sgd": {"optimizer": torch.optim.SGD, "optimizer__momentum": 0.9, "lr": 0.05, "optimizer__weight_decay": 1e-3},
    "adam": {"optimizer": torch.optim.Adam, "lr": 1e-3},
}


class Net(torch.nn.Module):
    """The default net of this package: a hidden layer of 64 units."""

    def __init__(self, n_inputs, n_classes):
        super().__init__()
        hidden, out = torch.nn.Linear(n_inputs, 64), torch.nn.Linear(64, n_classes)
        self.layers = torch.nn.Sequential(hidden, torch.nn.ReLU(), out)

    def forward(self, x):
        return self.layers(x)


def main(method, training, source, target):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    stored = np.load(source)
    X, n_classes = stored["X"].astype(np.float32), int(stored["n_classes"])
    y = np.full((len(X), int(stored["n_people"])), np.nan)
    y[stored["item"], stored["who"]] = stored["label"]
    settings = {"classes": np.arange(n_classes), "missing_label": np.nan, "random_state": int(stored["seed"])}
    if training != "none":
        torch.manual_seed(int(stored["seed"]))
        shape = {"module__n_inputs": X.shape[1], "module__n_classes": n_classes}
        net = {"max_epochs": 60, "batch_size": 64, "verbose": 0, **TRAININGS[training]}
        settings |= {"clf_module": Net, "neural_net_param_dict": net | shape, "n_annotators": y.shape[1]}
    model = getattr(multiannotator, method)(**settings)
    model.fit(X, y)  # which returns None where there is a net
    np.save(target, model.predict(stored["X_test"].astype(np.float32)).astype(int))


if __name__ == "__main__":
    main(*sys.argv[1:])
