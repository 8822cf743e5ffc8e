"""Runs command lines and calls in several forked processes that train together, as a launcher would.

A script, run in a fresh process by the fixture `several` (forking is safe only while there is a single
thread); one start of the interpreter serves many jobs. Reads one job a line, as JSON, and writes what became
of each process.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import tempfile
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from obverse._core.errors import BadInput, ObverseError
from obverse._core.tensors import save_tensors
from obverse.app.main import main
from obverse.training import ClassifierTask, Settings, fit_classifier
from obverse.training._distributed import any_of, by_all, by_first, is_first, joined, rank, share, size, total

sys.path.insert(0, str(Path(__file__).parent.parent))
from training.helpers import tiny_data


def task_of(
    settings: dict[str, Any], features: list[int], points: int = 60, dtype: str = "float64"
) -> ClassifierTask:
    """In float64, where another order of a sum is seen in the last digits alone."""
    torch.set_default_dtype(getattr(torch, dtype))
    data = tiny_data(points, features)
    data = replace(
        data,
        train_x=data.train_x.to(torch.get_default_dtype()),
        test_x=data.test_x.to(torch.get_default_dtype()),
    )
    return ClassifierTask(Settings.from_mapping(settings, "a test"), data)


def gradients(steps: list[int], out: str, product: str = "", **kind: Any) -> None:
    """What every process has after steps of its first epoch: gradients, weights and the loss.

    `product` names the type that the products of the net must have.
    """
    with joined():
        task = task_of(**kind)
        if product:
            check = partial(check_type, getattr(torch, product))
            task.net.get_submodule("h1").register_forward_hook(check)
        for step in steps:
            loss = task.step(0, step)
            found = {
                f"gradient.{name}": weight.grad
                for name, weight in task.net.named_parameters()
                if weight.grad is not None
            }
            found |= {name: value for name, value in task.tensors().items() if name == "scaler"}
            save_tensors(
                Path(out) / f"{step}-{rank()}",
                {**found, **task.model(), "loss": torch.tensor(loss)},
            )


def check_type(expected: torch.dtype, module: torch.nn.Module, args: object, output: torch.Tensor) -> None:
    assert output.dtype == expected, output.dtype


def training(
    settings: dict[str, Any], features: list[int], out: str, signal_at: dict[str, int] | None = None
) -> None:
    """A whole run, or one in which a single process gets a signal before a step."""
    with joined():
        task = task_of(settings, features)
        if signal_at and rank() == signal_at["rank"]:
            step, left = task.step, [signal_at["step"]]

            def signalled(epoch: int, index: int) -> float:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal_at.get("signal", signal.SIGTERM))
                return step(epoch, index)

            task.step = signalled  # type: ignore[method-assign]
        try:
            if not is_first():  # who writes a byte into a file gets an error
                resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            fit_classifier(task, Path(out))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def agreement() -> None:
    """The helpers, from inside."""
    assert (size(), rank()) == (1, 0)  # not yet
    with joined():
        n, own = size(), rank()
        assert (n, own) == (int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]))
        assert is_first() == (own == 0)
        assert total(own + 0.5) == n * (n - 1) / 2 + n / 2
        assert [any_of(own == one) for one in (0, n - 1, n)] == [True, True, False]
        assert by_first(lambda: {"first": rank()}) == {"first": 0}
        assert by_all(lambda: own) == own
        parts = [total(float(index == own)) and share(10) for index in range(n)]
        assert parts[own] == (10 * own // n, 10 * (own + 1) // n)
        sentence = "expected something; got nothing; give it"
        for call, wrong in ((by_first, 0), (by_all, 0), (by_all, n - 1)):
            with pytest.raises(BadInput if wrong == own else ObverseError) as caught:
                call(lambda wrong=wrong: fail() if rank() == wrong else 3)
            elsewhere = f"process {wrong} of {n}: " if call is by_all and wrong != own else ""
            assert str(caught.value) == elsewhere + sentence
    assert size() == 1


def fail() -> int:
    raise BadInput("something", got="nothing", do="give it")


def child(job: dict[str, Any], number: int, port: int, output: int) -> None:
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(
        RANK=str(number),
        LOCAL_RANK=str(number),
        WORLD_SIZE=str(job["processes"]),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        **job.get("environment", {}),
    )
    if "words" in job:
        os.chdir(job["folder"][number])
        sys.argv = ["obverse", *job["words"]]
        main()
    else:
        globals()[job["call"]](**job.get("arguments", {}))


def run(job: dict[str, Any]) -> list[dict[str, Any]]:
    """{"code": exit code, negative for a signal, "output": both streams} of each process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    processes = []
    for number in range(job["processes"]):
        output = tempfile.TemporaryFile()  # noqa: SIM115 (closed below, when the process has ended)
        if (process := os.fork()) == 0:
            code = 1
            try:
                child(job, number, port, output.fileno())
                code = 0
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            except BaseException as error:
                os.write(2, f"{type(error).__name__}: {error}".encode())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        processes.append((process, output))
    results = []
    for process, output in processes:
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        with output:
            output.seek(0)
            results.append({"code": status, "output": output.read().decode()})
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)
    for module in ("safetensors.torch", "sklearn.datasets", "filelock", "torch._dynamo"):
        import_module(module)  # once, not in every child

    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
        sys.stdout.flush()
