"""A minimal service around a `PanelDeferral`: whom to ask about an item, and its label.

    pip install fastapi uvicorn "sklearn-l2d[save]"
    TEAM=team.skops uvicorn service:app

The state is in the memory of one process: what has been asked and answered is lost with it, and a second process knows
nothing of it. Run one worker, and keep the answers in a database of yours where they matter.
"""

import os
import threading

import pandas as pd
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from sklearn_l2d import load


class Item(BaseModel):
    """An item by its name and features."""

    item: str
    features: list[float]


class Answer(BaseModel):
    """What somebody said about an item."""

    item: str
    expert: str
    label: str | int


class Desk:
    """Items, answers and the shift of a team. Requests come in several threads, and one at a time uses the team.

    Parameters
    ----------
    team : PanelDeferral
        Fitted; the names of its experts are strings.
    capacity : int or mapping by name, default=None
        Largest number of questions to each expert; see `start_shift`.
    """

    def __init__(self, team, capacity=None):
        self.team, self.shift = team, team.start_shift(capacity)
        self.experts, self.labels = list(team.experts_), set(team.classes_.tolist())
        self.features, self.answers, self.waiting = {}, {}, {}
        self.lock = threading.Lock()

    def next(self, item, features):
        """The expert to ask about an item, the same until there is an answer, or None where it is time to decide."""
        with self.lock:
            if self.features.get(item, features) != features:
                raise ValueError(f"item {item!r} came with other features before")
            if item not in self.waiting:
                who = self.shift.next_expert([features], self._annotations(item))[0]
                self.waiting[item] = None if who < 0 else self.experts[who]
                self.features[item] = features  # which the team has taken
            return self.waiting[item]

    def answer(self, item, expert, label):
        """Take in an answer, asked for or not; a second one by the same expert replaces the first."""
        with self.lock:
            self._check(item)
            if expert not in self.experts or label not in self.labels:
                raise ValueError(
                    f"{expert!r} is not on the roster, or {label!r} is no class"
                )
            self.answers.setdefault(item, {})[expert] = label
            self.waiting.pop(item, None)

    def label(self, item):
        """Label of an item by everybody so far, its probability, and the number of answers."""
        with self.lock:
            self._check(item)
            given = [self.features[item]], self._annotations(item)
            label = self.team.predict_team(*given, decision="combine")
            proba = self.team.predict_team_proba(*given)[0, self.team.classes_ == label]
            return {
                "label": label.tolist()[0],
                "confidence": float(proba[0]),
                "answers": len(self.answers.get(item, {})),
            }

    def _check(self, item):
        if item not in self.features:
            raise KeyError(f"item {item!r} is not known; send it to /next first")

    def _annotations(self, item):
        answers = self.answers.get(item, {})
        return pd.DataFrame(
            [[answers.get(expert) for expert in self.experts]],
            columns=self.experts,
            dtype=object,
        )


def make_app(desk):
    """The service for a `Desk`."""
    app = FastAPI(title="sklearn_l2d")

    @app.post("/next")
    def next_expert(item: Item):
        who = refused_by_status(desk.next, item.item, item.features)
        return {"ask": who} if who is not None else desk.label(item.item)

    @app.post("/answer")
    def answer(answer: Answer):
        refused_by_status(desk.answer, answer.item, answer.expert, answer.label)
        return {"taken": True}

    @app.get("/label")
    def label(item: str):
        return refused_by_status(desk.label, item)

    return app


def refused_by_status(method, *args):
    """The result of a method; what it refuses becomes a status of HTTP."""
    try:
        return method(*args)
    except KeyError as error:
        raise HTTPException(404, error.args[0]) from error
    except ValueError as error:
        raise HTTPException(422, str(error)) from error


if "TEAM" in os.environ:
    app = make_app(Desk(load(os.environ["TEAM"])))
