"""What figures were measured on."""

import datetime
import os
import platform
from importlib.metadata import version


def machine(threads):
    """One line of day, processor, `threads` in words, and versions."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "torch", "skorch"))
    return (
        f"{datetime.date.today()}; {os.cpu_count()} cores ({platform.machine()}), {threads}; "
        f"Python {platform.python_version()}, {packages}."
    )
