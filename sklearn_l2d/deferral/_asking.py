"""Asking people about items one after the other, each time whoever is worth most: with real or drawn answers."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from .._by_name import available_for
from .._numerics._answer_model import AnswerModel, sum_by_item, told
from .._numerics._answer_worth import answer_worth, worth_of_some
from .._numerics._answers import expected_correctness
from .._numerics._difficulty import difficulty_given, n_difficulties, over_difficulties
from .._numerics._fusion import Exponents, posterior
from .._numerics._keyed import keyed_uniforms, number_keys
from .._numerics._matching import match_within
from .._numerics._matrices import entries, row_blocks, row_chunks, rows_of

FEW = 100  # people who are compared about an item
_DRAWS = 1 << 40  # the numbers of drawn answers begin here, far from those of turns
_LIKE = 0.01  # people whose answers are worth the same but for this share take turns


class Asker(NamedTuple):
    """Rule by which a team asks.

    Attributes
    ----------
    model : AnswerModel
        How M experts answer.
    exponents : Exponents
        How much their answers count.
    cost : ndarray of shape (C, C) or None
        Cost of a decision (column) for each true class; None if every error costs 1.
    price : ndarray of shape (M,)
        Price of asking each expert, in errors.
    turns : ndarray of uint64 of shape (M,)
        Keys of the experts, by which those who are worth the same take turns.
    threshold : float
        Worth, less the price, from which somebody is asked.
    sure : float
        Probability of the label from which nobody is asked.
    most : int
        Largest number of answers to an item.
    told : ndarray of shape (C, M, C) or None
        `all_answers` of the model, where they are kept.
    """

    model: AnswerModel
    exponents: Exponents
    cost: np.ndarray | None
    price: np.ndarray
    turns: np.ndarray
    threshold: float
    sure: float
    most: int
    told: np.ndarray | None = None

    def worth(self, proba, size, keys, who):
        """Worth (n, k) less the price of asking people `who`: None for all M, or positions (n, k), -1 for nobody.

        Those whose answers are worth nearly the same have random places among one another, which depend on the item:
        they share the work.
        """
        if who is None:
            worth = answer_worth(proba, size, self.model, self.exponents, self.cost, self.told)
            return worth * _taken_in_turn(keys, self.turns) - self.price
        worth = worth_of_some(proba, size, who, self.model, self.exponents, self.cost)
        net = worth * _taken_in_turn(keys, self.turns[who]) - self.price[who]
        return np.where(who >= 0, net, -np.inf)

    def shortlist(self, proba, keys, shut):
        """Whom to compare, as in `worth`: of many people those who are most likely to be right, less their price.

        `shut` (n, M) says who cannot be asked.
        """
        if len(self.turns) <= FEW:
            return None
        rank = expected_correctness(proba, self.model.correctness)[:, :-1] * _taken_in_turn(keys, self.turns)
        rank -= self.price
        rank[shut] = -np.inf
        return np.sort(np.argpartition(-rank, FEW - 1, axis=1)[:, :FEW], axis=1)

    def likelihood(self, expert, shape):
        """Probabilities (n, C, D, C) of the answers of one expert about each item, by answer, difficulty and truth."""
        n_classes = len(self.model.offset)
        who, label = np.repeat(expert, n_classes), np.tile(np.arange(n_classes), len(expert))
        shape = None if shape is None else np.repeat(shape, n_classes, axis=0)
        log_likelihood = told(self.model, who, label, shape).at_difficulties(self.exponents.difficulty)
        return np.exp(log_likelihood).reshape(len(expert), n_classes, -1, n_classes)

    def drawn(self, joint, expert, shape, uniform):
        """Answers of one expert about each item, drawn by uniform random numbers from what is expected of them.

        `joint` (n, D, C) are the probabilities of the difficulty and the truth of the items.
        """
        answers, n_classes = np.empty(len(expert), dtype=int), joint.shape[2]
        for rows in row_chunks(len(expert), joint[0].size * n_classes):
            likelihood = self.likelihood(expert[rows], None if shape is None else shape[rows])
            chance = np.einsum("nadc,ndc->na", likelihood, joint[rows]).cumsum(1)
            answers[rows] = (uniform[rows, None] * chance[:, -1:] >= chance[:, :-1]).sum(1)
        return answers


def _taken_in_turn(keys, turns):
    """Factors of the worth of people, which differ little, and otherwise for every item."""
    return 1 + _LIKE * keyed_uniforms(keys[:, None], turns)


class Open(NamedTuple):
    """Who can still be asked about each item.

    Attributes
    ----------
    available : None, ndarray or sparse matrix of bool
        Of shape (M,) or (n, M), as users give it.
    heard : csr_array or None
        Stored entries are answers (n, M) that are known already.
    asked : ndarray of int of shape (n, t)
        Who has been asked since, -1 for nobody.
    """

    available: object
    heard: csr_array | None
    asked: np.ndarray

    def few(self, rows, full):
        """Who is available for some items if that is listed, as positions (len(rows), k); -1 for nobody.

        `full` (M,) says who can take no more.
        """
        listed = csr_array(self.available[rows])
        place = np.arange(listed.nnz) - np.repeat(listed.indptr[:-1], np.diff(listed.indptr))
        who = np.full((len(rows), place.max(initial=0) + 1), -1)
        who[rows_of(listed), place] = np.where(listed.data.astype(bool) & ~full[listed.indices], listed.indices, -1)
        gone = (who[:, :, None] == self.asked[rows][:, None, :]).any(2)
        if self.heard is not None:
            row, column = np.nonzero(who >= 0)
            gone[row, column] |= entries(self.heard[rows], row, who[row, column]) > 0
        return np.where(gone, -1, who)

    def shut(self, rows, full):
        """Who cannot be asked about some items: bool (len(rows), M)."""
        shut = np.tile(full, (len(rows), 1))
        shut |= np.logical_not(available_for(self.available, rows))
        if self.heard is not None:
            heard = self.heard[rows]
            shut[rows_of(heard), heard.indices] = True
        asked = self.asked[rows]
        place, step = np.nonzero(asked >= 0)
        shut[place, asked[place, step]] = True
        return shut

    def with_asked(self, rows, who):
        """The same after one more question about some items."""
        step = np.full((len(self.asked), 1), -1)
        step[rows, 0] = who
        return self._replace(asked=np.column_stack([self.asked, step]))


class Sample(NamedTuple):
    """Items to calibrate on: arguments of a `Talk` but for the asker."""

    log_prior: np.ndarray
    keys: np.ndarray
    shape: np.ndarray | None
    available: object
    draw_keys: np.ndarray

    def at_most(self, n_rows):
        """Evenly spaced rows, about so many."""
        some = slice(None, None, max(1, len(self.keys) // n_rows))
        by_row = self.available is not None and self.available.ndim == 2
        return Sample(
            self.log_prior[some],
            self.keys[some],
            None if self.shape is None else self.shape[some],
            self.available[some] if by_row else self.available,
            self.draw_keys[some],
        )


class Talk:
    """What is known about n items, which changes with every answer.

    People are compared as if all items were equally difficult: to expect less of everybody where people contradict one
    another gained nothing on published sets. The label and how sure it is, `proba`, and drawn answers know of
    difficulties.

    Parameters
    ----------
    asker : Asker
    log_prior : ndarray of shape (n, C)
        Log-probabilities of the classifier.
    keys : ndarray of uint64 of shape (n,)
        Keys of the items.
    shape : ndarray of shape (n, C) or None
        What people answer at the items.
    available : None, ndarray or sparse matrix of bool
        Who can be asked.
    draw_keys : ndarray of uint64 of shape (n,), default=None
        Keys of the answers that are drawn, where they are not those of the items.
    """

    n_scenarios = 1  # of the answers so far, for each item

    def __init__(self, asker, log_prior, keys, shape=None, available=None, draw_keys=None):
        self.draw_keys = keys if draw_keys is None else draw_keys
        each = np.repeat(np.arange(len(keys)), self.n_scenarios)
        self.asker, self.log_prior, self.keys = asker, log_prior[each], keys
        self.shape = None if shape is None else shape[each]
        n, n_classes = self.log_prior.shape
        self.evidence, self.size = np.zeros((n, n_classes)), np.zeros(len(keys), dtype=int)
        self.by_difficulty = np.zeros((n, n_difficulties(asker.exponents.difficulty), n_classes))
        self.open = Open(available, None, np.empty((len(keys), 0), dtype=int))

    def __len__(self):
        return len(self.keys)

    def proba(self, rows):
        """Probabilities (len(rows) * n_scenarios, C) of the truth of some items."""
        return self._posterior(rows, over_difficulties(self.by_difficulty[self._each(rows)]))

    def belief(self, rows):
        """As `proba`, by which people are compared."""
        return self._posterior(rows, self.evidence[self._each(rows)])

    def hear_votes(self, votes):
        """Take in answers that are known, a `Votes` on all items.

        An answer that is none of the classes tells nothing, but its author is not asked again.
        """
        self.open = self.open._replace(heard=votes.to_sparse())
        votes = votes.select(votes.label < self.log_prior.shape[1])
        heard, by_difficulty = self._told(votes.item, votes.annotator, votes.label)
        self.evidence += sum_by_item(heard, votes.item, len(self))
        self.by_difficulty += sum_by_item(by_difficulty, votes.item, len(self))
        self.size += np.bincount(votes.item, minlength=len(self))

    def hear(self, rows, who, answers):
        """Take in the answers (len(rows) * n_scenarios,) to one question about each of some items."""
        self.open = self.open.with_asked(rows, who)
        each = self._each(rows)
        heard, by_difficulty = self._told(each, np.repeat(who, self.n_scenarios), answers)
        self.evidence[each] += heard
        self.by_difficulty[each] += by_difficulty
        self.size[rows] += 1

    def hear_drawn(self, rows, who):
        """Take in answers that are drawn from what is expected of people."""
        each = self._each(rows)
        shape = None if self.shape is None else self.shape[each]
        uniform = self._uniform(rows, self.open.asked.shape[1])
        whom = np.repeat(who, self.n_scenarios)
        joint = self.belief(rows)[:, None] * difficulty_given(self.by_difficulty[each])
        self.hear(rows, who, self.asker.drawn(joint, whom, shape, uniform))

    def compare(self, rows, full=None):
        """Who can be asked about some items, block by block; `full` (M,) says who can take no more.

        Yields
        ------
        who : ndarray of int of shape (n, k) or None
            As in `Asker.worth`.
        net : ndarray of shape (n, k)
            Worth less price, on average over scenarios; -inf where somebody cannot be asked.
        sure : ndarray of bool of shape (n,)
            Whether the label is sure enough.
        """
        asker, d = self.asker, self.n_scenarios
        n_experts = len(asker.turns)
        full = np.zeros(n_experts, dtype=bool) if full is None else full
        listed = issparse(self.open.available) and n_experts > FEW
        for block in (rows[some] for some in row_blocks(len(rows), (FEW if listed else n_experts) * d)):
            proba, keys, size = self.belief(block), self.keys[block], self.size[block]
            by_scenario = proba.reshape(len(block), d, -1)
            if listed:
                who = self.open.few(block, full)
                shut = who < 0
            else:
                shut = self.open.shut(block, full)
                who = asker.shortlist(by_scenario.mean(1), keys, shut)
                shut = shut if who is None else np.take_along_axis(shut, who, axis=1)
            whom = None if who is None else np.repeat(who, d, axis=0)
            net = asker.worth(proba, np.repeat(size, d), np.repeat(keys, d), whom)
            net = net.reshape(len(block), d, -1).mean(1)
            net[shut | (size >= asker.most)[:, None]] = -np.inf
            sure = np.zeros(len(block), dtype=bool)
            if asker.sure < np.inf:
                sure = self.proba(block).max(1).reshape(len(block), d).mean(1) >= asker.sure
            yield who, net, sure

    def best(self, rows):
        """Who is worth most about some items: positions, worth less price, and whether the label is sure enough.

        Somebody is named even if it is not worth the price, and -1 where nobody can be asked.
        """
        parts = []
        for who, net, sure in self.compare(rows):
            place = net.argmax(1)[:, None]
            best = (place if who is None else np.take_along_axis(who, place, axis=1))[:, 0]
            net = np.take_along_axis(net, place, axis=1)[:, 0]
            parts.append((np.where(np.isneginf(net), -1, best), net, sure))
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def next(self, rows, capacity=None):
        """Whom to ask about some items next, -1 where it is time to decide; nobody more often than `capacity` (M,)."""
        if capacity is None:
            who, net, sure = self.best(rows)
            return np.where(sure | (net < self.asker.threshold), -1, who)
        matched, left, open_ = np.full(len(rows), -1), np.array(capacity), np.arange(len(rows))
        while len(open_):
            who, net = self._wanted(rows[open_], left <= 0)
            found = match_within(net, who, left)
            matched[open_] = found
            left -= np.bincount(found[found >= 0], minlength=len(left))
            if who is None or not (found >= 0).any():
                break
            open_ = open_[(found < 0) & np.isfinite(net).any(1)]  # all on their lists are taken, but others may be free
        return matched

    def _wanted(self, rows, full):
        """Who is worth asking about some items (n, k), as in `Asker.worth`, and the worth less price, else -inf."""
        threshold = self.asker.threshold
        parts = [
            (who, np.where(sure[:, None] | (net < threshold), -np.inf, net))
            for who, net, sure in self.compare(rows, full)
        ]
        if parts[0][0] is None:
            return None, np.concatenate([net for _, net in parts])
        longest = max(who.shape[1] for who, _ in parts)
        wide = [
            (np.pad(who, ((0, 0), (0, longest - who.shape[1])), constant_values=-1),
             np.pad(net, ((0, 0), (0, longest - net.shape[1])), constant_values=-np.inf))
            for who, net in parts
        ]  # fmt: skip
        return tuple(np.concatenate(part) for part in zip(*wide, strict=True))

    def without_each(self, votes):
        """Probabilities (n_answers, C) of the truth without each of the answers `votes` that were heard."""
        item = votes.item
        by_difficulty = self._told(item, votes.annotator, votes.label)[1]
        evidence = over_difficulties(self.by_difficulty[item] - by_difficulty)
        return np.exp(posterior(self.log_prior[item], evidence, self.size[item] - 1, self.asker.exponents))

    def _each(self, rows):
        """Positions of the scenarios of some items."""
        return (rows[:, None] * self.n_scenarios + np.arange(self.n_scenarios)).ravel()

    def _uniform(self, rows, step):
        return keyed_uniforms(self.draw_keys[rows], number_keys(_DRAWS + step))

    def _posterior(self, rows, evidence):
        each, size = self._each(rows), np.repeat(self.size[rows], self.n_scenarios)
        return np.exp(posterior(self.log_prior[each], evidence, size, self.asker.exponents))

    def _told(self, places, who, answers):
        """Log-likelihoods of answers, (n, C) and, by difficulty of the item, (n, D, C)."""
        heard = told(self.asker.model, who, answers, None if self.shape is None else self.shape[places])
        return heard.log_likelihood, heard.at_difficulties(self.asker.exponents.difficulty)


class Panel(Talk):
    """Items about which all people are chosen before any of them answers.

    What one more person is worth is averaged over scenarios of the answers of those who were chosen before.
    """

    n_scenarios = 8

    def _uniform(self, rows, step):
        quantile = (np.arange(self.n_scenarios) + 0.5) / self.n_scenarios
        return np.tile(np.random.default_rng(step).permutation(quantile), len(rows))


class Questions(NamedTuple):
    """Questions that are asked about items until a budget is spent.

    Attributes
    ----------
    item, expert : ndarrays of int of shape (n_questions,)
        Who is asked about what.
    level : ndarray of float of shape (n_questions,)
        Highest threshold at which the question is asked.
    n_items : int
    """

    item: np.ndarray
    expert: np.ndarray
    level: np.ndarray
    n_items: int

    def threshold(self, budget):
        """Threshold at which so many questions are asked per item: inf for none, -inf if there are no more."""
        n_wanted = round(budget * self.n_items)
        if n_wanted == 0:
            return np.inf
        if n_wanted >= len(self.level):
            return -np.inf
        last, first = np.partition(self.level, [-n_wanted - 1, -n_wanted])[[-n_wanted - 1, -n_wanted]]
        return float((last + first) / 2)

    def loads(self, threshold, n_experts):
        """Questions (M,) to each expert per item at a threshold."""
        asked = self.expert[self.level >= threshold]
        return np.bincount(asked, minlength=n_experts) / self.n_items


def draw_questions(talk, budget=None, capacity=None):
    """Ask with drawn answers, until so many questions per item are asked, or by the asker's own threshold for None.

    An item's later questions are asked at no higher threshold than its earlier ones, so that one run tells what every
    threshold asks. Nobody is asked more often than `capacity` (M,), by the asker's own threshold only.
    """
    rows, level = np.arange(len(talk)), np.full(len(talk), np.inf)
    n_wanted = np.inf if budget is None else round(budget * len(talk))
    items, experts, levels = [np.empty(0, dtype=int)], [np.empty(0, dtype=int)], [np.empty(0)]
    while len(rows):
        if budget is None:
            who = talk.next(rows, capacity)
        else:
            who, net, _ = talk.best(rows)
            level[rows] = np.minimum(level[rows], net)
        rows, who = rows[who >= 0], who[who >= 0]
        items.append(rows)
        experts.append(who)
        levels.append(level[rows])
        known = np.concatenate(levels)
        if len(known) > n_wanted:  # answers that do not matter for the budget are not drawn
            matters = levels[-1] >= np.partition(known, -n_wanted - 1)[-n_wanted - 1]
            rows, who = rows[matters], who[matters]
        if capacity is not None:
            capacity = capacity - np.bincount(who, minlength=len(capacity))
        if len(rows):
            talk.hear_drawn(rows, who)
    return Questions(np.concatenate(items), np.concatenate(experts), np.concatenate(levels), len(talk))


def hear_recorded(talk, answers):
    """Ask until it is time to decide, and take in the recorded answers; only their authors can be asked.

    Parameters
    ----------
    talk : Talk
        Before any question.
    answers : csr_array of shape (n, M)
        Codes of the answers plus 1.

    Yields
    ------
    rows : ndarray of int
        Items about which somebody has just answered; all of them before the first question.
    """
    talk.open = talk.open._replace(available=answers.astype(bool))
    rows = np.arange(len(talk))
    yield rows
    while len(rows):
        who = talk.next(rows)
        rows, who = rows[who >= 0], who[who >= 0]
        if len(rows):
            talk.hear(rows, who, entries(answers, rows, who).astype(int) - 1)
            yield rows
