"""Formulas as MathML, made by docutils while the site is built: browsers draw it without a script or a font.

Sphinx's own way is MathJax, which a page would fetch from another host.
"""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.writers.html5 import HTML5Translator

# docutils sets the index of a letter with an accent below the letter: x̂ with i under it, for x̂ᵢ
ACCENTED = re.compile(
    r'<munderover>\s*(<m[in][^>]*>[^<]*</m[in]>)(.*?)(<mo stretchy="false">[ˆ~ˉ]</mo>)\s*</munderover>',
    re.DOTALL,
)


def improved(text: str) -> str:
    """Accents over their letter alone, and the bars of norms as high as a letter, not as their line."""
    text = ACCENTED.sub(r'<msub><mover accent="true">\1\3</mover>\2</msub>', text)
    return re.sub(r'<mo( class="\w+")?>‖</mo>', r'<mo\1 stretchy="false">‖</mo>', text)


def mathml(node: nodes.math | nodes.math_block, as_block: bool) -> str:
    """The formula of a node; one that docutils cannot read stops the build."""
    try:
        return improved(tex2mathml(node.astext(), as_block=as_block))
    except Exception as error:
        raise SphinxError(f"{node.source}:{node.line}: formula {node.astext()!r}: {error}") from error


def inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("offline", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
