"""The onboarding benchmark: ``python -m sklearn_l2d.benchmark``."""
