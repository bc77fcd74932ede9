"""Pure functions on arrays: the mathematics, testable without an estimator."""
