"""From a template to a page, and the way text from files gets into it. Not for what a page says.

Escaping is the engine's, for every value that is not `markup`; `plain` bounds what there is to escape, and
`printable` goes over the whole page at the end.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from .._core import at_most, named, plain, printable, whole
from . import palette

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def environment() -> Environment:
    """Templates by their path in the library: everything escaped, a missing value an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    engine = Environment(
        loader=PackageLoader("obverse", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    engine.filters |= {
        "at_most": at_most,
        "named": named,
        "plain": plain,
        "whole": whole,
        "markup": markup,
    }
    return engine


def markup(svg: str) -> Markup:
    """SVG that the library drew itself, for the page as it is; never text that came from a file."""
    from markupsafe import Markup

    return Markup(svg)


def render_page(template: str, *, scripts: Sequence[str] = (), **values: Any) -> str:
    """The page of a template that extends present/base.html.j2.

    `template` and `scripts` are paths in the library. A page runs no other script than these: its
    content-security policy names their digest.
    """
    from markupsafe import Markup

    from .. import __version__

    code = "".join(files("obverse").joinpath(name).read_text(encoding="utf-8") for name in scripts)
    page = (
        environment()
        .get_template(template)
        .render(
            **values,
            script=Markup(code),
            digest=base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() if code else "",
            palette=palette,
            version=__version__,
        )
    )
    return printable(page, keep="\n\t")  # also what is in figures, and whatever a template forgot
