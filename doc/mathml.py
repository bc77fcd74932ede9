"""A Sphinx extension: formulas as MathML, which browsers draw themselves. MathJax would be fetched from a network.

The converter is that of docutils, which Sphinx needs anyway. A formula that it cannot read is a warning, hence an
error of the build.
"""

from docutils.nodes import SkipNode
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

_LOGGER = logging.getLogger(__name__)


def _to_mathml(node, as_block):
    tex = node.astext()
    try:
        return latex2mathml.tex2mathml(tex, as_block=as_block)
    except MathError as error:
        _LOGGER.warning("formula %r: %s", tex, error, location=node)
        return f"<code>{tex}</code>"


def visit_math(translator, node):
    translator.body.append(_to_mathml(node, as_block=False))
    raise SkipNode


def visit_displaymath(translator, node):
    translator.body.append(translator.starttag(node, "div", CLASS="formula"))
    translator.body.append(_to_mathml(node, as_block=True))
    translator.body.append("</div>")
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
