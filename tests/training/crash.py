"""Runs command lines in forked processes that kill themselves, or meet a full disk, where they are told to.

A script, run in a fresh process by the fixture `jobs` (forking is safe only while there is a single
thread); one start of the interpreter serves many crashes. Reads one job a line, as JSON, and writes what
became of it.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

from obverse.app.main import app, main
from obverse.app.report import PAGES
from obverse.training import _classify as classify


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(operation: str, number: int) -> Callable[[], int]:
    """Kill this process at the `number`-th call of an operation from now on; returns a counter of calls.

    "step" dies before a training step, "fsync", "replace" and "unlink" before the call, "write" after half
    of the bytes are in the file, "after-replace" once the new file is in place; "any" counts them all.
    """
    calls = 0

    def counts(kind: str) -> bool:
        nonlocal calls
        if operation not in (kind, "any"):
            return False
        calls += 1
        return calls == number

    def before(kind: str, place: Any, name: str) -> None:
        original = getattr(place, name)

        def call(*args: Any, **keywords: Any) -> Any:
            if counts(kind):
                die()
            result = original(*args, **keywords)
            if kind == "replace" and counts("after-replace"):
                die()
            return result

        setattr(place, name, call)

    before("fsync", os, "fsync")
    before("replace", os, "replace")
    before("unlink", Path, "unlink")
    if operation == "step":
        before("step", classify.ClassifierTask, "step")

    write_bytes = Path.write_bytes

    def half(self: Path, content: Any) -> int:
        if counts("write"):
            with self.open("wb") as file:
                file.write(content[: len(content) // 2])
            die()
        return write_bytes(self, content)

    Path.write_bytes = half
    Path.write_text = lambda self, text, encoding=None, **_: half(self, text.encode(encoding))
    return lambda: calls


def child(job: dict[str, Any], output: int) -> None:
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = ["obverse", *job["words"]]
    if "kill" in job:
        arm(*job["kill"])
    if "file_size" in job:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_size"], resource.RLIM_INFINITY))
    main()


def run(job: dict[str, Any]) -> dict[str, Any]:
    """{"code": exit code, negative for a signal, "output": both streams}."""
    # Resuming a run that died before its config.json was there means to start it again.
    if "or_else" in job and not Path(job["or_else"]["unless"]).exists():
        job = job | {"words": job["or_else"]["words"]}
    with tempfile.TemporaryFile() as output:
        if (process := os.fork()) == 0:
            code = 1
            try:
                child(job, output.fileno())
                code = 0
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        output.seek(0)
        return {"code": status, "output": output.read().decode()}


if __name__ == "__main__":
    # Once, not in every child: what is imported at first use. An optimizer alone imports torch._dynamo.
    pages = (f"obverse.{room}.page" for room in PAGES)
    for module in ("safetensors.torch", "sklearn.datasets", "filelock", "torch._dynamo", "jinja2", *pages):
        import_module(module)
    commands = get_command(app)  # with what parsing a command line imports
    assert isinstance(commands, TyperGroup)
    commands.commands["train"].make_context("train", [])

    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
        sys.stdout.flush()
