"""The real command in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from obverse.app._explorer.address import Address


@dataclass
class Running:
    process: subprocess.Popen[str]
    address: Address

    def memory(self) -> int:
        """Bytes that belong to the process alone."""
        return int(psutil.Process(self.process.pid).memory_full_info().uss)

    def stop(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(30)


def start(cache: Path, *words: str) -> Running:
    """`obverse explore`, once it has printed its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "obverse", "explore", "--no-browser", *words],
        env=os.environ | {"XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith("obverse explore: http://127.0.0.1:"):
        assert process.stderr is not None
        raise AssertionError(line + process.stderr.read())
    port, token = line.split("127.0.0.1:")[1].strip().strip("/").split("/")
    return Running(process, Address(int(port), token))


@contextmanager
def explorer(cache: Path, *words: str) -> Iterator[Running]:
    running = start(cache, *words)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.process.communicate()
