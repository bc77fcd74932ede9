"""The one place that imports matplotlib, which is optional."""


def import_pyplot(caller):
    """Return `matplotlib.pyplot`, or say how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} draws with matplotlib, which is not installed: pip install 'sklearn-l2d[plot]'."
        ) from error
    return plt
