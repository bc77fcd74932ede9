"""Groups of people who answer alike, found from a few answers of each: a mixture of answer models."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp

from ._answer_model import AnswerModel, count_answers, fit_counts
from ._answer_worth import answering_likelihood
from ._matrices import row_chunks, rows_of

_N_STARTS, _FEW_STEPS = 3, 4  # people around whom another group may form, and steps of EM by which they are compared
_PRIOR = 3.0  # answers as everybody gives them that join those of a group, for each true class
_MAX_ITER, _STILL = 50, 1e-3  # steps of EM, and the gain per person, in nats, below which they end


class Groups(NamedTuple):
    """K groups of M people, and how their members answer.

    Attributes
    ----------
    member : ndarray of int of shape (M,)
        Group of each person.
    model : AnswerModel
        Of the groups in place of people: a group answers as all its members together.
    """

    member: np.ndarray
    model: AnswerModel


def find_groups(counts, n_groups):
    """Groups of people by their answers to items of known truth.

    A mixture of answer models is fitted by EM, and people then belong to the likeliest group. Groups are added one by
    one: another one starts with somebody whose answers the groups so far explain worst, and with all who answer rather
    like this person. Of a few such people, the one of the likeliest mixture is taken. Nothing is drawn, and the order
    of the people matters to none of it.

    Parameters
    ----------
    counts : csr_array of shape (M, C * C)
        Answers of each person by answer and true class, as a `Roster` holds them.
    n_groups : int
        Largest number of groups.

    Returns
    -------
    path : list of Groups
        With 1, 2, ... groups at most, the most accurate one first. A group without members is left out. With as many
        groups as people, each is alone.
    """
    n_people, share = counts.shape[0], np.ones((counts.shape[0], 1))
    path, prior = [_settled(counts, share)], _prior_answers(counts)
    for _ in range(2, min(n_groups, n_people - 1) + 1):
        share = _with_another(counts, prior, share)
        path.append(_settled(counts, share))
    return [*path, single_groups(counts)] if 1 < n_people <= n_groups else path


def single_groups(counts):
    """`Groups` of one person each; `counts` as in `find_groups`."""
    return _settled(counts, np.eye(counts.shape[0]))


def held_out_likelihood(fold, item, person, label, n_people, truth, n_groups):
    """Log-likelihood of the answers of each person that are held out, for 1, 2, ... groups.

    Everybody belongs to the group that the other answers speak for.

    Parameters
    ----------
    fold : ndarray of int of shape (n,)
        Fold of each item.
    item, person, label : ndarrays of int of shape (n_answers,)
        Item, person and class of every answer.
    n_people : int
        Number of people M.
    truth : ndarray of shape (n, C)
        Distribution of the true class, one-hot if it is known, times the weight of the item.
    n_groups : int
        Largest number of groups.

    Returns
    -------
    likelihood : ndarray of shape (M, min(M, n_groups))
        Of the held-out answers of all folds, in nats.
    """
    total = np.zeros((n_people, min(n_people, n_groups)))
    for one in np.unique(fold):
        held = fold[item] == one
        learnt, left = (
            counts_by_person(item[some], person[some], label[some], n_people, truth) for some in (~held, held)
        )
        for n, groups in enumerate(find_groups(learnt, total.shape[1])):
            total[:, n] += (left @ _log_answers(groups.model).T)[np.arange(n_people), groups.member]
    return total


def fewest_groups(likelihood):
    """Smallest number of groups that is not clearly worse than the best one.

    It is within a standard error, over people, of the largest sum of `likelihood` (M, n_groups), as
    `held_out_likelihood` returns it.
    """
    loss = likelihood[:, [likelihood.sum(0).argmax()]] - likelihood
    error = loss.std(0) * np.sqrt(len(loss))
    return int(np.flatnonzero(loss.sum(0) <= error)[0]) + 1


def match_groups(model, weight, item, person, label, n_people, truth):
    """Group (n_people,) that each of some newcomers most probably belongs to.

    Parameters
    ----------
    model : AnswerModel
        Of the groups in place of people.
    weight : ndarray of shape (K,)
        How many people belong to each group. Newcomers who have not answered join the largest one.
    item, person, label : ndarrays of int of shape (n_answers,)
        Item, newcomer and class of every answer.
    n_people : int
        Number of newcomers.
    truth : ndarray of shape (n, C)
        Distribution of the true class before they answer, one-hot if it is known. Where it is not, an answer speaks for
        the groups that would give it there, whatever the truth.
    """
    n_groups, n_classes = model.seen.shape
    likelihood = answering_likelihood(model).transpose(2, 0, 1)  # answer, truth, group
    log_joint = np.tile(np.log(weight), (n_people, 1))
    for some in row_chunks(len(item), n_classes * n_groups):
        told = (truth[item[some]][:, None] @ likelihood[label[some]])[:, 0]
        np.add.at(log_joint, person[some], np.log(told))
    return log_joint.argmax(1)


def counts_by_person(item, person, label, n_people, truth):
    """Answers (n_people, C * C) of each person by answer and true class; parameters as in `count_answers`."""
    n_classes = truth.shape[1]
    own = count_answers(item, person, label, n_people, truth)[0]
    return csr_array(own.reshape((n_people, n_classes**2)))


def _with_another(counts, prior, share):
    """Shares (M, K + 1) of people in the likeliest mixture with one more group than in that of shares (M, K)."""
    told, found = counts @ _log_rows(_pooled(counts, share), prior).T, []
    for person in np.argsort((share * told).sum(1) - _alone(counts, prior), kind="stable")[:_N_STARTS]:
        joins = counts @ _log_rows(counts[[person]].toarray(), prior)[0] > told.max(1)
        joins[person] = True
        start = np.column_stack([np.where(joins[:, None], 0.0, share), joins])
        found.append(_climb(counts, prior, start, _FEW_STEPS))
    return _climb(counts, prior, max(found, key=lambda result: result[0])[1], _MAX_ITER)[1]


def _climb(counts, prior, share, n_iter):
    """Log-likelihood of the answers after some steps of EM, and the shares (M, K) of people in groups."""
    before = -np.inf
    for _ in range(n_iter):
        with np.errstate(divide="ignore"):
            log_weight = np.log(share.mean(0))
        log_joint = log_weight + counts @ _log_rows(_pooled(counts, share), prior).T
        evidence = logsumexp(log_joint, axis=1, keepdims=True)
        share, now = np.exp(log_joint - evidence), evidence.sum()
        if now - before < _STILL * len(share):
            break
        before = now
    return now, share


def _prior_answers(counts):
    """Answers (C, C), by answer and true class, that join those of a group: a few, as everybody gives them."""
    n_classes = round(np.sqrt(counts.shape[1]))
    everybody = counts.sum(0).reshape(n_classes, n_classes) + 1 / n_classes
    return _PRIOR * everybody / everybody.sum(0)


def _pooled(counts, share):
    """Answers (K, C * C) of groups that people belong to by shares (M, K)."""
    return (counts.T @ share).T


def _log_rows(counts, prior):
    """Log-probabilities (K, C * C) of the answers of groups that gave these (K, C * C)."""
    cells = counts.reshape(-1, *prior.shape) + prior
    return np.log(cells / cells.sum(1, keepdims=True)).reshape(len(cells), -1)


def _alone(counts, prior):
    """Log-likelihood (M,) of the answers of each person, as a group of one."""
    person, (answer, truth) = rows_of(counts), np.divmod(counts.indices, len(prior))
    cell = person * len(prior) + truth
    seen = np.bincount(cell, counts.data)
    proba = (counts.data + prior[answer, truth]) / (seen[cell] + _PRIOR)
    return np.bincount(person, counts.data * np.log(proba), minlength=counts.shape[0])


def _settled(counts, share):
    """`Groups` of people who belong to where they have the largest share (M, K)."""
    n_classes = round(np.sqrt(counts.shape[1]))
    used, member = np.unique(share.argmax(1), return_inverse=True)
    cells = _pooled(counts, np.eye(len(used))[member]).reshape(-1, n_classes, n_classes)  # group, answer, truth
    right, seen = np.diagonal(cells, axis1=1, axis2=2), cells.sum(1)
    accuracy = (right.sum(1) + right.sum() / max(seen.sum(), 1e-300)) / (seen.sum(1) + 1)
    order = np.argsort(-accuracy, kind="stable")
    own = csr_array(cells[order].reshape(-1, n_classes))
    return Groups(np.argsort(order)[member], fit_counts(own, right[order], seen[order]))


def _log_answers(model):
    """Log-probabilities (K, C * C) of what the people of a model answer, by answer and true class."""
    return np.log(answering_likelihood(model)).transpose(1, 2, 0).reshape(len(model.seen), -1)
