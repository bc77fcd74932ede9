"""The service in `examples/serving` asks whom the team asks, in one thread or in many."""

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
from _instances import make_crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.deferral import PanelDeferral

pytest.importorskip("fastapi", reason="the service is an example: fastapi is no dependency")
testclient = pytest.importorskip("fastapi.testclient", reason="the client of fastapi's tests needs httpx")

NAMES = list("ABCDE")


@pytest.fixture(scope="module")
def service():
    path = Path(__file__).parents[1] / "examples" / "serving" / "service.py"
    spec = importlib.util.spec_from_file_location("service", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(n_samples=120)


@pytest.fixture(scope="module")
def team(crowd):
    team = PanelDeferral(LogisticRegression(), answers=1.5, cv=2, random_state=0)
    return team.fit(crowd.X, crowd.y, annotations=pd.DataFrame(crowd.annotations, columns=NAMES))


def client_of(service, team, **settings):
    desk = service.Desk(team, **settings)
    return desk, testclient.TestClient(service.make_app(desk))


def serve(client, name, x, answers):
    """Ask until there is a label; `answers` (5,) are what the experts would say. Returns it and who was asked."""
    asked = []
    while True:
        reply = client.post("/next", json={"item": name, "features": x.tolist()}).json()
        if "ask" not in reply:
            return reply, asked
        assert client.post("/next", json={"item": name, "features": x.tolist()}).json() == reply
        asked.append(reply["ask"])
        label = int(answers[NAMES.index(reply["ask"])])
        assert client.post("/answer", json={"item": name, "expert": reply["ask"], "label": label}).json()["taken"]


@pytest.mark.parametrize("n_threads", [1, 4])
def test_items_are_asked_about_as_the_team_would(service, team, crowd, n_threads):
    everything = make_crowd(n_samples=12, random_state=1)
    said = everything.annotations.copy()
    said[said < 0] = 0  # everybody has an answer
    recorded = team.replay(everything.X, said)
    _, client = client_of(service, team)
    with ThreadPoolExecutor(n_threads) as pool:
        replies = list(pool.map(lambda i: serve(client, f"item {i}", everything.X[i], said[i]), range(12)))
    asked = [[NAMES[who] for who in row if who >= 0] for row in recorded.asked]
    assert sum(map(len, asked)) > 3
    assert [who for _, who in replies] == asked
    assert_array_equal([reply["label"] for reply, _ in replies], recorded.labels)
    assert_allclose([reply["confidence"] for reply, _ in replies], recorded.proba.max(1))
    for i, (reply, _) in enumerate(replies):
        assert client.get("/label", params={"item": f"item {i}"}).json() == reply


def test_capacities_hold_for_the_whole_shift(service, team, crowd):
    desk, client = client_of(service, team, capacity=2)
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(lambda i: client.post("/next", json={"item": str(i), "features": crowd.X[i].tolist()}), range(60))
        )
    assert desk.shift.served_.max() == 2


def test_what_is_wrong_is_refused(service, team, crowd):
    _, client = client_of(service, team)
    features = crowd.X[0].tolist()
    assert client.get("/label", params={"item": "a"}).status_code == 404
    assert client.post("/answer", json={"item": "a", "expert": "A", "label": 1}).status_code == 404
    assert client.post("/next", json={"item": "a", "features": features}).status_code == 200
    for wrong in ({"expert": "Z", "label": 1}, {"expert": "A", "label": 7}):
        reply = client.post("/answer", json={"item": "a", **wrong})
        assert (reply.status_code, "no class" in reply.json()["detail"]) == (422, True)
    reply = client.post("/next", json={"item": "a", "features": features[::-1]})
    assert (reply.status_code, "other features" in reply.json()["detail"]) == (422, True)
    assert client.post("/next", json={"item": "b", "features": features[:2]}).status_code == 422
    assert client.post("/next", json={"item": "b", "features": features}).status_code == 200
