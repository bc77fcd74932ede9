"""The example of Dawid and Skene (1979): 45 patients and five anaesthetists, of whom the first read three times."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sklearn_l2d._numerics._crowd_em import count_answers_of, log_joint_of, posterior_of, run_em, safe_log

READINGS = """
1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223 2322223 4444444 2223343 1111111 2223212 1211111
1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111 2322222 1111111 1111111 1121121
1111111 3333233 1111111 2222222 2223232 4334343 2212232 2323233 3333432 1111111 1111111 1212111 2322222 1211111 2222222
"""
READERS = np.array([0, 0, 0, 1, 2, 3, 4])
PUBLISHED = "142222132243121111222222112111131224233111212"  # section 4


def test_example_of_the_paper():
    """Its estimates are those of maximum likelihood, from vote shares as start."""
    readings = np.array([[int(digit) - 1 for digit in patient] for patient in READINGS.split()])
    answers = np.zeros((45, 5 * 4))
    np.add.at(answers, (np.arange(45)[:, None], READERS * 4 + readings), 1)
    answers = csr_array(answers)

    def maximise(truth):
        counts = count_answers_of(answers, truth, 5)
        return (counts / counts.sum(2, keepdims=True), truth.mean(0)), 0.0

    def expect(parameters):
        confusion, prior = parameters
        return posterior_of(log_joint_of(answers, safe_log(confusion), safe_log(prior)))

    start = (readings[:, :, None] == np.arange(4)).mean(1)
    (_, prior), truth, history, converged = run_em(start, maximise, expect, np.ones(45), 1000, 1e-9)
    assert converged
    assert np.diff(history).min() > -1e-9
    assert_allclose(prior, [0.40, 0.42, 0.11, 0.07], atol=0.005)
    assert_array_equal(truth.argmax(1) + 1, [int(digit) for digit in PUBLISHED])
