"""The machine on which figures were measured."""

import datetime
import os
import platform
from importlib.metadata import version


def machine(threads):
    """One line with the day, the processor, `threads` (a text) and versions of packages."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "torch", "skorch"))
    return (
        f"{datetime.date.today()}; {os.cpu_count()} cores ({platform.machine()}), {threads}; "
        f"Python {platform.python_version()}, {packages}."
    )
