"""The template engine and the way text from files gets into a page. Not for what a page says.

Escaping is the engine's, for every value that is not `Markup`; `plain` bounds what there is to escape.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def environment() -> Environment:
    """Templates by their path in the library: everything escaped, a missing value an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("obverse", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def script(*names: str) -> tuple[Markup, str]:
    """The scripts at these paths in the library as one, and the digest by which a page allows it alone."""
    from markupsafe import Markup

    code = "".join(files("obverse").joinpath(name).read_text(encoding="utf-8") for name in names)
    return Markup(code), base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
