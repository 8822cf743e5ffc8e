"""Which claims there are: the library's own, and those of a user's file. Not for running them."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path

from .._core import BadInput, NoSuchFile
from ._claim import Claim

# The packages of claims beside this file: one per paper, and one for the rules of tools in use.
PAPERS = ("alm", "identity", "ladder", "vae", "gan", "tools")
PREFIX = "obverse_claims_"  # of the name that a user's file has as a module
_CLAIMS: dict[str, tuple[str, Claim]] = {}  # by id, with the module that registered it
_LOADING: list[str] = []  # the user's file that is being run


def register(claim: Claim) -> Claim:
    """Add a claim to those that can be named; at the top level of a module of claims."""
    # The measurement may be another module's: a user's claim about what the library measures.
    owner = _LOADING[-1] if _LOADING else getattr(claim.measure, "__module__", "")
    other, _ = _CLAIMS.get(claim.id, (None, claim))
    # A module of the library may be imported anew; a user's file has been forgotten before it is run again.
    if other is not None and (other != owner or _LOADING):
        where = getattr(sys.modules.get(other), "__file__", other) if other.startswith(PREFIX) else "obverse"
        raise BadInput(
            "an id that no other claim has", got=f"{claim.id!r}, which is one of {where}", do="rename it"
        )
    _CLAIMS[claim.id] = owner, claim
    return claim


def claims() -> dict[str, Claim]:
    """All claims by id, in the order of the papers, and then those of users' files."""
    for paper in PAPERS:
        import_module(f"{__package__}.{paper}")
    return {id: claim for id, (_, claim) in _CLAIMS.items()}


def find(names: Sequence[str], *, long: bool = True) -> list[Claim]:
    """The claims that the ids or patterns (`alm.lemma*`) name, each once.

    Without `long` a pattern passes over those that train on images; an id names them all the same.
    """
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
        wanted = {one: claim for one, claim in matching.items() if long or not claim.long or one == name}
        if not wanted:
            raise BadInput(
                f"{name!r} to name claims that train on no images",
                got=", ".join(matching),
                do="add --long",
            )
        found |= wanted
    return list(found.values())


def paper_of(claim: Claim) -> str:
    """The paper of a claim in a line, as its package says it; of a user's file, that it is one's own."""
    owner, _ = _CLAIMS.get(claim.id, (PREFIX, claim))
    paper = claim.id.partition(".")[0]
    if owner.startswith(PREFIX) or paper not in PAPERS:
        return "Claims of your own"
    return (import_module(f"{__package__}.{paper}").__doc__ or paper).partition("\n")[0].rstrip(".")


def load_module(path: Path) -> list[Claim]:
    """Run a user's file, which registers claims; returns those. It is code of the user's own choosing."""
    file = Path(path)
    if not file.exists():
        raise NoSuchFile(path)
    if not file.is_file() or file.suffix != ".py":
        raise BadInput("a Python file with claims", got=str(path), do="see examples/my_claims.py")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("a Python file in UTF-8", got=f"{path}: {error}", do="correct it") from None
    origin = str(file.resolve())
    other = getattr(sys.modules.get(PREFIX + file.stem), "__file__", origin)
    if other != origin:
        raise BadInput(
            "files of claims with names of their own", got=f"{other} and {origin}", do="rename one of them"
        )
    return load_source(file.stem, text, origin)


def load_source(name: str, text: str, origin: str) -> list[Claim]:
    """Claims from the text of a module; `origin` is where it stood, perhaps on another machine.

    What the module registered when it was loaded before is forgotten; if it fails, nothing has changed.
    """
    claims()  # the library's first, so that a clash of ids is the user's
    title = PREFIX + name
    spec = importlib.util.spec_from_loader(title, loader=None, origin=origin)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = origin
    module.__dict__["__claims_source__"] = (name, text, origin)
    folder = str(Path(origin).parent)
    if folder not in sys.path:  # so that it can import its neighbours, as when run by itself
        sys.path.append(folder)
    before, module_before = dict(_CLAIMS), sys.modules.get(title)
    for id in [id for id, (owner, _) in _CLAIMS.items() if owner == title]:
        del _CLAIMS[id]
    sys.modules[title] = module
    _LOADING.append(title)
    try:
        exec(compile(text, origin, "exec"), module.__dict__)
        found = [claim for owner, claim in _CLAIMS.values() if owner == title]
        if not found:
            raise BadInput(
                f"claims registered by {origin}", got="none", do="call obverse.claims.register(Claim(…))"
            )
    except BaseException as error:
        _CLAIMS.clear()
        _CLAIMS.update(before)
        sys.modules.pop(title)
        if module_before is not None:
            sys.modules[title] = module_before
        if isinstance(error, BadInput | KeyboardInterrupt):
            raise
        raise BadInput(
            f"a module of claims in {origin}", got=format_error(error, origin), do="correct it"
        ) from error
    finally:
        _LOADING.pop()
    return found


def forget_users() -> None:
    """Forget the claims of users' files: for a worker that serves several users, one after the other."""
    for id in [id for id, (owner, _) in _CLAIMS.items() if owner.startswith(PREFIX)]:
        del _CLAIMS[id]


def format_error(error: BaseException, origin: str) -> str:
    """The error in a line, with the line of the file that it comes from."""
    said = " ".join(f"{type(error).__name__}: {error}".split())
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == origin]
    return f"{said} (line {lines[-1]})" if lines else said
