"""Which claims there are: the library's own, and those of a user's file. Not for running them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path

from ..errors import BadInput
from .claim import Claim

PAPERS = ("alm",)  # the packages of claims beside this file, one a paper
_CLAIMS: dict[str, Claim] = {}


def register(claim: Claim) -> Claim:
    """Add a claim to those that can be named; at the top level of a module of claims."""
    if claim.id in _CLAIMS and _CLAIMS[claim.id].measure.__module__ != claim.measure.__module__:
        raise BadInput(
            "an id that no other claim has", got=f"{claim.id!r} in {claim.measure.__module__}", do="rename it"
        )
    _CLAIMS[claim.id] = claim
    return claim


def claims() -> dict[str, Claim]:
    """All claims by id, in the order of the papers."""
    for paper in PAPERS:
        import_module(f"{__package__}.{paper}")
    return dict(_CLAIMS)


def find(names: Sequence[str]) -> list[Claim]:
    """The claims that the ids or patterns (`alm.lemma*`) name, each once."""
    known = claims()
    found: dict[str, Claim] = {}
    for name in names:
        matching = {one: claim for one, claim in known.items() if fnmatchcase(one, name)}
        if not matching:
            from difflib import get_close_matches

            near = get_close_matches(name, known, n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(near)}? " if near else ""
            raise BadInput(
                "the id of a claim, or a pattern", got=repr(name), do=f"{hint}see: obverse claims list"
            )
        found |= matching
    return list(found.values())


def load_module(path: Path) -> list[Claim]:
    """Run a user's file, which registers claims; returns those. It is code of the user's own choosing."""
    file = Path(path)
    if not file.is_file() or file.suffix != ".py":
        raise BadInput("a Python file with claims", got=str(path), do="see examples/my_claims.py")
    claims()  # the library's first, so that a clash of ids is the user's
    return load_source(file.stem, file.read_text(encoding="utf-8"), str(file.resolve()))


def load_source(name: str, text: str, origin: str) -> list[Claim]:
    """Claims from the text of a module; `origin` is where it stood, perhaps on another machine."""
    title = f"obverse_claims_{name}"
    spec = importlib.util.spec_from_loader(title, loader=None, origin=origin)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = origin
    module.__dict__["__claims_source__"] = (name, text, origin)
    folder = str(Path(origin).parent)
    if folder not in sys.path:  # so that it can import its neighbours, as when run by itself
        sys.path.append(folder)
    before = dict(_CLAIMS)
    sys.modules[title] = module
    try:
        exec(compile(text, origin, "exec"), module.__dict__)
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(
            f"a module of claims in {origin}", got=f"{type(error).__name__}: {error}", do="correct it"
        ) from error
    found = [claim for id, claim in _CLAIMS.items() if before.get(id) is not claim]
    if not found:
        raise BadInput(
            f"claims registered by {origin}", got="none", do="call obverse.claims.register(Claim(…))"
        )
    return found
