"""Sphinx configuration. Nothing here needs a network, and every warning is an error in the test run."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import api_reference  # noqa: E402
import changelog  # noqa: E402
import choices  # noqa: E402
import evidence  # noqa: E402
import newcomers  # noqa: E402
import scikit_learn  # noqa: E402
from numpydoc.xref import DEFAULT_LINKS  # noqa: E402
from pictures.evidence import draw_answers, draw_areas  # noqa: E402
from pictures.tree import draw_tree  # noqa: E402

from sklearn_l2d import __version__  # noqa: E402

project = "sklearn_l2d"
author = "The sklearn_l2d developers"
copyright = "2026, The sklearn_l2d developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "mathml",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "examples", "**/GALLERY_HEADER.rst"]
default_role = "code"  # single backticks in docstrings hold code

autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"  # names of methods would be cut off beside the page
numpydoc_show_class_members = False  # the class template lists them
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # but for these; numpydoc's own go to inventories that a build would have to fetch
numpydoc_xref_aliases = {word: word for word in DEFAULT_LINKS} | scikit_learn.ALIASES
intersphinx_mapping = {"sklearn": (scikit_learn.URL, "generated/scikit-learn.inv")}

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["l2d.css"]
html_math_renderer = "mathml"
html_title = f"sklearn_l2d {version}"
html_show_sourcelink = False
_WITHOUT_SECTION = ("getting_started", "glossary", "faq", "generated/changelog")
html_sidebars = {page: [] for page in _WITHOUT_SECTION}
html_theme_options = {
    "logo": {"text": "sklearn_l2d"},  # the version would not fit a phone
    "navigation_with_keys": False,
    "show_prev_next": False,
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "capture_repr": (),  # what is worth showing is printed
    "reference_url": {"sklearn_l2d": None},
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("sklearn_l2d",),
}


def _skip_inherited(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to every estimator: its text points to pages that are not here."""
    foreign = (getattr(obj, "__module__", None) or "").startswith("sklearn.")
    return True if foreign or re.fullmatch(r"set_\w+_request", name) else None


def setup(app):
    generated = HERE / "generated"
    generated.mkdir(exist_ok=True)
    (generated / "scikit-learn.inv").write_bytes(scikit_learn.render())
    sources = {
        "api_reference.rst": api_reference.render,
        "areas.inc": evidence.render,
        "changelog.rst": changelog.render,
        "choices.inc": choices.render,
        "newcomers.inc": newcomers.render,
        "newer.inc": evidence.render_newer,
    }
    for name, render in sources.items():
        page, text = generated / name, render()
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
    for name, draw in {"answers": draw_answers, "areas": draw_areas, "tree": draw_tree}.items():
        draw(generated / f"{name}.svg")
    app.connect("autodoc-skip-member", _skip_inherited)
