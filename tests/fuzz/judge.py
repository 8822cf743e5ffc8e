"""Runs one case in a forked process with bounds on time and memory, and says what became of it.

A case is accepted or refused in a sentence. It fails by any other exception, by a signal, by time or memory
beyond the bounds, by running what it carries, by touching what lies outside its folder, and by control
characters or its own markup in what a person sees.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from obverse._core import ObverseError
from obverse.app.main import command

from .case import EXECUTED, OUTSIDE, SECRET, Case

SECONDS = 10  # of the processor, for one case; what is left of it is valid in a hundredth
PATIENCE = 300  # seconds by the clock, for what waits without working
MEMORY = 512  # megabytes beyond what the process had before; the files of a case have a few at most
ROOM = (
    4096  # megabytes of addresses beyond that: a larger block is refused by the system, which counts as well
)
BIDIRECTIONAL = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
MARKUP = ("<script>alert('canary", "<img src=x")
PASSED = ("accepted", "refused")


def _read(path: str, read: Callable[[Path], Any]) -> None:
    sys.stdout.write(f"{read(Path(path))}\n")


def _idx(dimensions: int) -> Callable[[str], None]:
    from obverse.data._idx import read_idx

    return lambda path: _read(path, lambda one: read_idx(one, dimensions).shape)


def _cifar(label_bytes: int) -> Callable[..., None]:
    from obverse.data._cifar import read_cifar

    def read(*paths: str) -> None:
        sys.stdout.write(f"{read_cifar([Path(path) for path in paths], label_bytes, 10)[0].shape}\n")

    return read


def _settings(path: str) -> None:
    from obverse.training._settings import Settings, read_toml

    _read(path, lambda one: Settings.from_mapping(read_toml(one), path).to_dict())


def _generator_settings(path: str) -> None:
    from obverse.training._generators.settings import GeneratorSettings
    from obverse.training._settings import read_toml

    _read(path, lambda one: GeneratorSettings.from_mapping(read_toml(one), path).to_dict())


def _probe(kind: str) -> None:
    """What each kind of failure looks like, to see that it is noticed."""
    if kind == "crash":
        raise RuntimeError("not a sentence of ours")
    if kind == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif kind == "memory":
        sys.stdout.write(str(len(b"x" * ((MEMORY + 50) * 2**20))))
    elif kind == "promise":  # more than there is, asked for and refused, and told as if the file were wrong
        try:
            bytearray(100 * ROOM * 2**20)
        except MemoryError as error:
            raise ObverseError(f"expected a sound file; got {error!r}") from None
    elif kind == "time":
        while True:
            pass
    elif kind == "control":

        class Uncleaned(ObverseError):
            def __str__(self) -> str:
                return "expected a name; got \x1b[31mred"

        raise Uncleaned
    elif kind == "output":
        sys.stdout.write("\x9b31mred")
    elif kind == "page":
        Path("page.html").write_text("a\x07b", encoding="utf-8")
    elif kind == "markup":
        Path("page.html").write_text(f"<p>{MARKUP[0]}')</p>", encoding="utf-8")
    elif kind == "executed":
        Path(EXECUTED).touch()
    elif kind == "written":
        Path(OUTSIDE).write_text("changed", encoding="utf-8")
    elif kind == "read":
        sys.stdout.write(Path(OUTSIDE).read_text(encoding="utf-8"))
    elif kind == "refused":
        raise ObverseError("expected a number; got none")


def readers() -> dict[str, Callable[..., None]]:
    """What is read by a function rather than by a command of its own."""
    from obverse.data import load, load_unlabelled

    from .hub import serve_and_audit

    return {
        "idx1": _idx(1),
        "idx3": _idx(3),
        "hub": serve_and_audit,
        "cifar1": _cifar(1),
        "cifar2": _cifar(2),
        "data": lambda path: _read(path, load),
        "unlabelled": lambda path: _read(path, lambda one: load_unlabelled(one).x.shape),
        "settings": _settings,
        "generator settings": _generator_settings,
        "probe": _probe,
    }


def control(text: str, allowed: str = "\n") -> str | None:
    """The first character that could steer a terminal or mislead a reader."""
    for letter in text:
        if letter not in allowed and (
            unicodedata.category(letter) in ("Cc", "Cs") or letter in BIDIRECTIONAL
        ):
            return ascii(letter)
    return None


def _run(words: tuple[str, ...]) -> tuple[str, str]:
    """What became of it as seen from inside, and the sentence."""
    try:
        if words[0] in (others := readers()):
            others[words[0]](*words[1:])
        else:
            command()(list(words), prog_name="obverse", standalone_mode=False)
    except ObverseError as error:
        return ("memory" if _no_memory(error) else "refused"), str(error)
    except SystemExit:
        return "accepted", ""
    except BaseException as error:
        if _no_memory(error):
            return "memory", _where(error)
        return "crash", _where(error)
    return "accepted", ""


def _no_memory(error: BaseException | None) -> bool:
    """Whether a refused block of memory is behind it, however it is worded."""
    while error is not None:
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "obverse" in frame.filename] or frames
    places = " < ".join(f"{Path(frame.filename).name}:{frame.name}" for frame in reversed(ours[-3:]))
    return f"{type(error).__name__}: {str(error)[:200]} at {places}"


def _child(cases: Sequence[Case], root: Path) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM * 2**20,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**28,) * 2)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(PATIENCE)
    # Its own at its start: pages of libraries that it shares with its parent count only once it touches them.
    resident = _resident()
    before = set(sys.modules)
    for place, case in enumerate(cases):
        here = root / str(place)
        out = os.open(here / "output", os.O_WRONLY | os.O_CREAT)
        os.chdir(here / "case")
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.close(out)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
        start = time.process_time()
        outcome, sentence = _run(case.words)
        sys.stdout.flush()
        sys.stderr.flush()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        said = (outcome, sentence, max(0.0, peak - resident), time.process_time() - start)
        (here / "said").write_text(json.dumps(said), encoding="utf-8")
    modules = [name for name in sys.modules if name not in before and not name.startswith("__")]
    (root / "modules").write_text("\n".join(modules), encoding="utf-8")


def judge_all(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Several in one process, which is quicker; if anything is wrong, each in a process of its own."""
    found = _judged(cases)
    if len(cases) > 1 and not all(one["outcome"] in PASSED for one in found):
        return [judge(case) for case in cases]
    return found


def judge(case: Case) -> dict[str, Any]:
    """{"outcome", "detail", "processor" (seconds), "megabytes"}."""
    (found,) = _judged([case])
    return found


def _judged(cases: Sequence[Case]) -> list[dict[str, Any]]:
    command()  # once, before the processes of the cases are forked
    root = Path(tempfile.mkdtemp())
    try:
        outside = []
        for place, case in enumerate(cases):
            folder = root / str(place) / "case"
            folder.mkdir(parents=True)
            case.write(folder)
            outside.append((folder / OUTSIDE).read_bytes() if (folder / OUTSIDE).exists() else b"")
        if (process := os.fork()) == 0:
            code = 1
            try:
                _child(cases, root)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        status = os.waitpid(process, 0)[1]
        _import_what_it_imported(root / "modules")
        found = []
        for place in range(len(cases)):
            here = root / str(place)
            outcome, detail, megabytes, processor = _outcome(os.waitstatus_to_exitcode(status), here)
            if outcome in PASSED and megabytes > MEMORY:
                outcome, detail = "memory", f"{megabytes:.0f} MB; {detail[:200]}"
            if outcome in PASSED:
                outcome, detail = _seen(here, here / "case", outcome, detail, outside[place])
            worst = {"processor": round(processor, 3), "megabytes": round(megabytes, 1)}
            found.append({"outcome": outcome, "detail": detail, **worst})
        return found
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def _outcome(code: int, here: Path) -> tuple[str, str, float, float]:
    """What became of it, the sentence, the most megabytes beyond its start by then, its seconds."""
    if (here / "said").exists():
        outcome, sentence, peak, seconds = json.loads((here / "said").read_text(encoding="utf-8"))
        return outcome, sentence, peak, seconds
    if code in (-signal.SIGPROF, -signal.SIGALRM):
        limit = (
            f"more than {SECONDS} s of work" if code == -signal.SIGPROF else f"{PATIENCE} s without an end"
        )
        return "time", limit, 0.0, SECONDS
    output = here / "output"
    said = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
    return "crash", signal.Signals(-code).name if code < 0 else said[-500:], 0.0, 0.0


def _import_what_it_imported(file: Path) -> None:
    """Here once, and not in every child again."""
    for name in file.read_text(encoding="utf-8").split() if file.exists() else ():
        with suppress(Exception):  # what can only be imported where it was
            import_module(name)


def _seen(root: Path, folder: Path, outcome: str, sentence: str, outside: bytes) -> tuple[str, str]:
    """What a person sees, and what lies there afterwards."""
    output = (root / "output").read_text(encoding="utf-8", errors="surrogateescape")
    if (found := control(sentence, "")) or (found := control(output)):
        return "control", f"{found} in {(sentence if control(sentence, '') else output)[:300]!a}"
    pages = [path for path in folder.rglob("*.html") if path.is_file() and not path.is_symlink()]
    for page in pages:
        content = page.read_text(encoding="utf-8", errors="surrogateescape")
        if found := control(content, "\n\t"):
            return "control", f"{found} in the page {page.name}"
        if any(markup in content for markup in MARKUP):
            return "markup", f"in the page {page.name}"
    if list(folder.rglob(EXECUTED)) or (root / EXECUTED).exists():
        return "executed", "a payload was run"
    left = (folder / OUTSIDE).read_bytes() if (folder / OUTSIDE).exists() else b""
    strange = {path.name for path in root.iterdir()} - {"case", "output", "said", "outside"}
    if left != outside or strange:
        return "outside", f"written: {', '.join(sorted(strange)) or OUTSIDE}"
    if outcome == "accepted" and SECRET in output:
        return "outside", f"{OUTSIDE} was read"
    return outcome, sentence
