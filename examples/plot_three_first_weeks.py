"""
Three first weeks
=================

From the file that a labelling tool exports to a queue of work that is served, answered
and labelled: with a team whose names are known, with volunteers and no truth at all,
and with images, a net of your own and an archive without names.
"""

# %%
# What the tools export
# ---------------------
# This cell makes three exports up from the digits, so that the page can run. You have
# yours.

import json
import warnings
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from torch import nn

from sklearn_l2d.datasets import load_digits_crowd

# An item that nobody who is free can improve stays with the classifier. The library
# says so each time; once in the text below is enough.
warnings.filterwarnings("ignore", message=".* deferred items found nobody")

crowd = load_digits_crowd(random_state=0)
people = [f"expert {j}" for j in range(6)]
known, waiting = crowd.X_identified, crowd.X_test
rng = np.random.default_rng(0)
names = [f"scan{i:04d}" for i in range(len(known))]


def answered(i):
    """Who answered an item, and what."""
    return [(people[j], int(v)) for j, v in enumerate(crowd.annotations[i]) if v >= 0]


def choice(label):
    value = {"choices": [str(label)]}
    return {"from_name": "digit", "to_name": "image", "type": "choices", "value": value}


label_studio = [
    {
        "id": i,
        "data": {"image": name},
        "annotations": [
            {"completed_by": {"email": who}, "result": [choice(label)]}
            for who, label in answered(i)
        ],
    }
    for i, name in enumerate(names)
]

zooniverse = pd.DataFrame(
    [
        (f"volunteer {j}", json.dumps([{"task": "T0", "value": str(label)}]), i)
        for i, row in enumerate(crowd.annotations_test)
        for j, label in enumerate(row)
        if rng.random() < 0.4
    ],
    columns=["user_name", "annotations", "subject_ids"],
)
truth = pd.Series(crowd.y_identified.astype(str), index=names)
new = pd.DataFrame(waiting, index=[f"new{i:04d}" for i in range(len(waiting))])


def ask(i, j):
    """The answer of a person; this stands for your queue of work."""
    return str(crowd.annotations_test[i, j])


# %%
# A team by name
# --------------
# Label Studio knows who answered, and you know the truth of these items. A panel asks one
# person after the other about each new item, until an answer per item is spent on average.

from sklearn.linear_model import LogisticRegression

from sklearn_l2d import PanelDeferral, from_long
from sklearn_l2d.annotations import from_label_studio

table = from_long(from_label_studio(label_studio, task="image"))
items = pd.DataFrame(known, index=names).loc[table.index]
panel = PanelDeferral(LogisticRegression(C=0.1), answers=1.0, random_state=0)
panel.fit(items, truth[table.index], annotations=table, X_unlabeled=new)

answers = pd.DataFrame(None, index=new.index, columns=panel.experts_, dtype=object)
while ((who := panel.next_expert(new, annotations=answers)) >= 0).any():
    for i in np.flatnonzero(who >= 0):
        answers.iloc[i, who[i]] = ask(i, people.index(panel.experts_[who[i]]))
labels = panel.predict_team(new, answers)

alone = np.mean(panel.predict(new) == crowd.y_test.astype(str))
team = np.mean(labels == crowd.y_test.astype(str))
asked = answers.notna().to_numpy().sum() / len(new)
print(f"classifier {alone:.3f}, with {asked:.2f} answers per item {team:.3f}")

# %%
# Volunteers, and no truth
# ------------------------
# Zooniverse knows who answered, and nobody knows the truth. The recommended consensus
# labels what people agree on; what is left open goes to somebody who is often right.

from sklearn_l2d.aggregation import HierarchicalDawidSkene, MajorityVote
from sklearn_l2d.annotations import encode_votes, from_zooniverse

votes = encode_votes(from_zooniverse(zooniverse))
consensus = HierarchicalDawidSkene().fit(votes)
proba = pd.DataFrame(consensus.predict_proba(votes), votes.tasks, consensus.classes_)
retired = proba[proba.max(axis=1) > 0.95].idxmax(axis=1)
queue = proba.drop(retired.index)
best = consensus.annotators_[consensus.annotator_accuracy_.argmax()]
print(f"{len(retired)} retired, {len(queue)} go to {best}")

true = pd.Series(crowd.y_test.astype(str))
true = true[votes.tasks]
rival = np.mean(MajorityVote().fit_predict(votes) == true)
ours = np.mean(consensus.predict(votes) == true)
sure = np.mean(retired == true[retired.index])
print(f"consensus {ours:.3f}, majority {rival:.3f}, what is retired {sure:.3f}")

# %%
# Images, a net of your own, and votes without names
# --------------------------------------------------
# Last year's archive holds counts. It shows how people answer; this year's team is placed
# among these behaviours by a few labels. Items come one by one, and nobody gets more than
# sixty. What finds nobody who is free and likely to do better stays with the classifier.

from sklearn.frozen import FrozenEstimator

from sklearn_l2d import AnnotatorLDA, ClusterDeferral
from sklearn_l2d.crowd import NetClassifier


class SmallNet(nn.Sequential):
    def __init__(self, n_outputs):
        body = nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, n_outputs)
        super().__init__(*body)


images = partial(np.reshape, shape=(-1, 1, 8, 8))
lda = AnnotatorLDA(3, module=SmallNet, max_epochs=30, random_state=0)
lda.fit(images(crowd.X_anonymous), crowd.counts)
gate = ClusterDeferral(
    FrozenEstimator(lda),
    classifier=NetClassifier(module=SmallNet, random_state=0),
    module=SmallNet,
    coverage=0.5,
    random_state=0,
).fit(images(known), crowd.y_identified, annotations=crowd.annotations)

shift = gate.start_shift(capacity=60)
who = np.concatenate([shift.assign_experts(image[None]) for image in images(waiting)])
served = np.bincount(who[who >= 0], minlength=6)
given = np.full((300, 6), -1)
given[who >= 0, who[who >= 0]] = crowd.annotations_test[who >= 0, who[who >= 0]]
labels = gate.predict_team(images(waiting), given, decision="combine")

net = np.mean(gate.predict(images(waiting)) == crowd.y_test)
print(f"net {net:.3f}, team {np.mean(labels == crowd.y_test):.3f}, served {served}")

# %%
# What the answers were worth
# ---------------------------

fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.barh(
    [
        "panel: classifier",
        "panel: team",
        "majority",
        "consensus",
        "net",
        "net and team",
    ],
    [alone, team, rival, ours, net, np.mean(labels == crowd.y_test)],
    color=["0.7", "tab:blue"] * 3,
)
ax.invert_yaxis()
ax.set(xlim=(0.5, 1), xlabel="accuracy on 300 new digits")
plt.show()

# %%
# The panel gains most: it knows the truth of some items, and whom to ask about which.
# Without any truth and with two or three answers per item, the consensus is hardly better
# than the majority, but it knows which of its labels are sure.
