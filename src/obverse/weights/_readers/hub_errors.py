"""What a hub, or the way to it, refuses: a sentence for each. Not for what is wrong with a file's content."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from ..._core import BadInput, require
from .address import Address
from .stored import printable

_OLDEST = "1.0"
LOG_IN = "log in with `hf auth login` or set HF_TOKEN if it is private"


def library(name: str = "") -> Any:
    """huggingface_hub, or a module of it; a sentence where it is not installed or too old."""
    package = require("huggingface_hub", "hub")
    if not hasattr(require("huggingface_hub.utils", "hub"), "http_stream_backoff"):
        raise BadInput(
            f"huggingface_hub {_OLDEST} or later",
            got=package.__version__,
            do="update it with: pip install -U 'obverse[hub]'",
        )
    return require(f"huggingface_hub.{name}", "hub") if name else package


def endpoint() -> str:
    """The hub that is asked: huggingface.co, or what HF_ENDPOINT says, without a password in it."""
    parts = urlsplit(library().constants.ENDPOINT)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


@contextmanager
def refusals(address: Address) -> Iterator[None]:
    """Turns what the library raises, about this repository or file, into a sentence."""
    try:
        yield
    except BadInput:
        raise
    except Exception as error:
        found = _sentence(error, address)
        if found is None:
            raise
        raise found from None


def is_transport(error: BaseException) -> bool:
    """Did the connection fail, rather than the hub refuse?"""
    errors = library("errors")
    base = errors.HfHubHTTPError.__bases__[
        0
    ]  # of the library's HTTP client: which one depends on the version
    return isinstance(error, base) and not isinstance(error, errors.HfHubHTTPError)


def status_of(error: BaseException) -> int | None:
    """The HTTP status with which the hub refused."""
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    return status if isinstance(status, int) else None


def _sentence(error: BaseException, address: Address) -> BadInput | None:
    errors, place, status = library("errors"), endpoint(), status_of(error)
    repository, short = address.repository, address.short
    cause = error.__cause__
    if isinstance(error, errors.LocalEntryNotFoundError) and cause is not None:
        return _sentence(cause, address)
    if isinstance(error, errors.OfflineModeIsEnabled | errors.LocalEntryNotFoundError):
        return not_cached(address)
    if isinstance(error, errors.GatedRepoError):
        return BadInput(
            f"access to {repository}, a gated repository",
            got=_http(status),
            do=f"accept its terms at {place}/{repository} and log in with `hf auth login` or HF_TOKEN",
        )
    if isinstance(error, errors.RevisionNotFoundError):
        got = printable(address.revision) or "the hub says that there is none"
        return BadInput(f"a branch, tag or commit of {repository}", got=got, do=f"see {place}/{repository}")
    if isinstance(error, errors.EntryNotFoundError):
        do = f"see its files at {place}/{repository}"
        return BadInput(
            f"the file {printable(address.path)} in {repository}", got=f"none at {_at(address)}", do=do
        )
    if isinstance(error, errors.RepositoryNotFoundError) or status == 401:
        do = f"check the name, and {LOG_IN}"
        got = f"none of that name, or a private one ({_http(status)})"
        return BadInput(f"the repository {repository} on {place}", got=got, do=do)
    if isinstance(error, errors.HFValidationError):
        return BadInput("a repository as org/name", got=printable(repository), do="check the name")
    if status == 403:
        do = "use a token that may read it, see `hf auth login`"
        return BadInput(f"to be allowed to read {short}", got=_http(status), do=do)
    if status is not None:
        return BadInput(f"an answer about {short} from {place}", got=_http(status), do="try again later")
    if is_transport(error) or type(error).__module__.split(".")[0].startswith("httpx"):
        return unreachable(error)
    if isinstance(error, errors.FileMetadataError | ValueError | TypeError | KeyError | AttributeError):
        got = f"another answer ({type(error).__name__}: {printable(str(error))})"
        return BadInput(f"the interface of a hub at {place}", got=got, do="check HF_ENDPOINT")
    if isinstance(error, OSError):
        got = printable(error.strerror or str(error))
        return BadInput(f"to fetch {short}", got=got, do="free space in HF_HOME, or check its permissions")
    return None


def unreachable(error: BaseException) -> BadInput:
    got = printable(str(error)) or type(error).__name__
    do = "check the network and HF_ENDPOINT, or set HF_HUB_OFFLINE=1 to use what is in the cache"
    return BadInput(f"to reach {endpoint()}", got=got, do=do)


def not_cached(address: Address) -> BadInput:
    """HF_HUB_OFFLINE is set, and it is not there."""
    revision = f" --revision {address.revision}" if address.revision else ""
    file = f" {address.path}" if address.path else ""
    return BadInput(
        f"{address.short} in the cache {library().constants.HF_HUB_CACHE}, as HF_HUB_OFFLINE is set",
        got="no such copy",
        do=f"unset it, or download with: hf download {address.repository}{file}{revision}",
    )


def _at(address: Address) -> str:
    return f"revision {printable(address.revision)}" if address.revision else "its main branch"


def _http(status: int | None) -> str:
    return "a refusal" if status is None else f"HTTP status {status}"
