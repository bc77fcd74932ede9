"""The onboarding benchmark, all of it: methods, sets, tables and figures.

    python benchmarks/onboarding.py --jobs 2 --output benchmarks/results/onboarding

It is `python -m sklearn_l2d.benchmark`, which says what can be chosen with --help. The cells that are finished are kept
in the folder, so that it goes on after an interruption; only the report, the table of results and the figures are
committed.
"""

from sklearn_l2d.benchmark.__main__ import main

if __name__ == "__main__":
    main()
