"""Behind ``python -m sklearn_l2d``: data, steps and sentences of the story that it tells."""
