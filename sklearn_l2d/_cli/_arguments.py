"""What the commands ask of their arguments."""

import argparse
import os


def positive(kind):
    """Parser of positive, finite numbers of a kind, for `add_argument(type=...)`."""

    def parse(text):
        value = kind(text)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not positive and finite")
        return value

    parse.__name__ = kind.__name__  # named in the message of argparse
    return parse


def check_writable(path):
    """Refuse a file that cannot be written."""
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder.")
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise ValueError(f"cannot write {path}: {path.parent} is not a folder that can be written to.")
