"""Hostile repositories: weight files behind a server that may lie about them. Not for what the files are."""

from __future__ import annotations

from pathlib import Path
from random import Random

from huggingface_hub import close_session, constants

from obverse.app.main import command
from weights.hub_server import Handler, Hub, Reply, cut, other, ranged, refused, serving, span_of, whole

from .case import Case
from .mutate import number, text
from .weights import safetensors, shards

HEADERS = ("X_Repo_Commit", "ETag", "X_Linked_Etag", "X_Linked_Size", "Location", "Content_Range")


def hub(random: Random) -> Case:
    """A file or shards, hostile or sound, and a seed for how they are served."""
    case = random.choice((safetensors, shards))(random)
    return Case(case.files, ("hub", str(random.getrandbits(32))))


def serve_and_audit(seed: str) -> None:
    """The audit of what lies in this folder, from a server that is at fault in its answers now and then."""
    from obverse.weights._readers import ranges

    random = Random(f"served {seed}")
    files = {one.name: one.read_bytes() for one in Path().iterdir() if one.stat().st_size < 2**24}
    found = Hub()
    found.repository().commit(files)
    found.plan = [fault(random) if random.random() < 0.3 else ranged for _ in range(20)]
    if random.random() < 0.2:
        name = random.choice(HEADERS)
        found.headers = {name: random.choice((None, sendable(text(random)), "0" * 40))}
    ranges._PAUSE = 0.0
    with serving(found) as address:
        for name, value in {
            "ENDPOINT": address,
            "HUGGINGFACE_CO_URL_TEMPLATE": address + "/{repo_id}/resolve/{revision}/{filename}",
            "HF_HUB_CACHE": str(Path("home").absolute()),
            "HF_HUB_DISABLE_TELEMETRY": True,
            "HF_HUB_DOWNLOAD_TIMEOUT": 5,
        }.items():
            setattr(constants, name, value)
        close_session()
        try:
            words = ["audit", "hf://org/net", "--samples", "2"]
            command()(words, prog_name="obverse", standalone_mode=False)
        finally:
            close_session()


def fault(random: Random) -> Reply:
    few = (-7, -1, 0, 1, 9)
    return random.choice(
        (
            whole,
            cut(random.randrange(100)),
            other(*(random.choice(few) for _ in range(4))),
            refused(random.choice((200, 204, 206, 304, 400, 401, 403, 404, 410, 416, 451, 500, 503))),
            refused(206, Content_Range=f"bytes {number(random)}-{number(random)}/{number(random)}"),
            refused(206, Content_Range=sendable(text(random))),
            refused(302, Location=sendable(text(random))),
            endless,
        )
    )


def endless(handler: Handler, data: bytes) -> None:
    """Far more than it says that it sends."""
    start, stop = span_of(handler, data) or (0, len(data))
    about = f"bytes {start}-{max(stop - 1, start)}/{len(data)}"
    handler.reply(206, bytes(2**22), Content_Range=about)


def sendable(value: str) -> str:
    """As a header can have it."""
    return value.encode("latin-1", "replace").decode("latin-1").replace("\r", " ").replace("\n", " ")
