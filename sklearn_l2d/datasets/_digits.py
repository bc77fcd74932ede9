"""The embedded data set: scikit-learn's digits, labelled by six simulated experts."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

from ..annotations import to_counts
from ._experts import make_expert_pairs
from ._simulate import as_generator, sample_identified

_DESCR = """\
Digits crowd
============
The 1,797 handwritten digits of scikit-learn (8 x 8 grey values in [0, 1], 10 classes), labelled by three
pairs of simulated experts who mistake 5, 20 and 35 percent of the items before truncation (5A, 5B, 20C, 20D,
35E, 35F; see make_expert_pairs). The chance of a mistake and the mistaken class depend on the image.

Three disjoint parts:

- anonymous: every expert labelled every image, names are lost, votes per class remain (counts);
- identified: each expert labelled a few images, in columns named after them, -1 where there is no label;
- test: the labels of all experts, to score a team.

True labels come with all parts; the anonymous ones are for evaluation and for a pre-trained classifier.
"""


def load_digits_crowd(
    *,
    n_identified=100,
    n_anonymous=1197,
    n_test=300,
    same_items=False,
    share_confusion=False,
    random_state=0,
):
    """Load the embedded crowd: digits with six simulated experts, in anonymous, identified and test parts.

    Nothing is read from outside the installed packages. The roster is that of L2D-Clusters section 5.1,
    the identified part its onboarding benchmark (section 4).

    Parameters
    ----------
    n_identified : int, default=100
        Identified labels per expert.
    n_anonymous, n_test : int, default=1197 and 300
        Images in the anonymous and in the test part. The identified labels are drawn from the others of
        the 1,797.
    same_items : bool, default=False
        Whether all experts label the same identified images.
    share_confusion : bool, default=False
        Whether both experts of a pair confuse the same digits on the same images.
    random_state : None, int, numpy Generator or RandomState, default=0
        Seed of the split, the experts and their identified images.

    Returns
    -------
    Bunch
        Anonymous part: ``X_anonymous`` of shape (n_anonymous, 64), ``counts`` of shape (n_anonymous, 10),
        ``y_anonymous``. Identified part, images without any label left out: ``X_identified``,
        ``annotations`` of shape (n_rows, 6) with -1 for missing, ``y_identified``. Test part: ``X_test``,
        ``annotations_test`` (complete), ``y_test``. Besides: ``experts``, ``groups``, ``rates``,
        ``realized_rates`` (over all images), ``target_names``, ``feature_names`` and ``DESCR``.

    Raises
    ------
    ValueError
        If the parts do not fit into the 1,797 images.

    Examples
    --------
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(n_identified=50)
    >>> crowd.counts.shape, crowd.annotations_test.shape
    ((1197, 10), (300, 6))
    >>> (crowd.annotations != -1).sum(axis=0)
    array([50, 50, 50, 50, 50, 50])
    """
    digits = load_digits()
    X, y = digits.data / 16, digits.target
    n_pool = len(y) - n_anonymous - n_test
    if min(n_anonymous, n_test) < 1 or not 1 <= n_identified <= n_pool:
        raise ValueError(
            f"n_anonymous={n_anonymous} and n_test={n_test} leave {max(n_pool, 0)} of {len(y)} images for "
            f"n_identified={n_identified} per expert; every part needs at least one, so lower one of them."
        )
    split_rng, expert_rng, sample_rng = as_generator(random_state).spawn(3)
    roster = make_expert_pairs(X, y, share_confusion=share_confusion, random_state=expert_rng)
    anonymous, test, pool = np.split(split_rng.permutation(len(y)), [n_anonymous, n_anonymous + n_test])
    identified = sample_identified(
        roster.annotations[pool], n_identified, same_items=same_items, random_state=sample_rng
    )
    kept = (identified != -1).any(axis=1)
    return Bunch(
        X_anonymous=X[anonymous],
        counts=to_counts(roster.annotations[anonymous], classes=roster.classes),
        y_anonymous=y[anonymous],
        X_identified=X[pool[kept]],
        annotations=identified[kept],
        y_identified=y[pool[kept]],
        X_test=X[test],
        annotations_test=roster.annotations[test],
        y_test=y[test],
        experts=roster.experts,
        groups=roster.groups,
        rates=roster.rates,
        realized_rates=roster.realized_rates,
        target_names=np.array([str(name) for name in digits.target_names]),
        feature_names=np.array(digits.feature_names),
        DESCR=_DESCR,
    )
