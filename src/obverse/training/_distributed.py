"""Several processes that train one net: who they are, and how they agree. Not for what is trained.

`torchrun --nproc-per-node N -m obverse train …` starts them; the first one, of rank 0, is the one that reads
and writes files. Without a launcher there is one process, and everything here is plain calling.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import torch
from torch import Tensor, distributed, nn

from .._core import BadInput, ObverseError

if TYPE_CHECKING:
    from torch._C._distributed_c10d import GradBucket
    from torch.distributed.distributed_c10d import Store

Value = TypeVar("Value")


class PeerLost(ObverseError):
    """Another process of the same training is gone."""


def is_launched() -> bool:
    """Whether a launcher such as torchrun has started this process as one of several."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= set(os.environ) and distributed.is_available()


def may_restart() -> bool:
    return int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")) > 0


def started_anew() -> bool:
    """Whether the launcher has started the processes before; the same answer in each, which all must ask.

    Every machine counts for itself, and only those of its own processes that failed.
    """
    return any_of(int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0)


def launchers() -> list[str]:
    """Which launchers have started the processes, the same list in each; all must ask.

    A launcher keeps its name when it starts its processes anew, and shares it with no other.
    """
    parent = os.getppid()
    try:  # a number is given again, but not with the same time
        began = Path(f"/proc/{parent}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        began = ""
    own = sha256(f"{platform.node()} {parent} {began}".encode()).hexdigest()[:16]
    return sorted(set(_gathered(own)))


def same_in_all(what: str, value: str, do: str) -> None:
    """An error in all processes if they do not have the same value."""
    found = len(set(_gathered(value)))
    if found > 1:
        raise BadInput(f"the same {what} in all {size()} processes", got=f"{found} different ones", do=do)


def _gathered(value: str) -> list[str]:
    """The values of all processes, in their order."""
    if size() == 1:
        return [value]
    found: list[Any] = [None] * size()
    distributed.all_gather_object(found, value)
    return found


def size() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if _joined() else 1


def rank() -> int:
    return distributed.get_rank() if _joined() else 0


def is_first() -> bool:
    """Whether this is the process that writes; one that has not joined others works alone."""
    return rank() == 0


def speaks() -> bool:
    """Whether this is the process that prints, also before it has joined the others and after."""
    return not is_launched() or os.environ["RANK"] == "0"


def _joined() -> bool:
    return distributed.is_available() and distributed.is_initialized()


@contextmanager
def joined() -> Iterator[None]:
    """Inside, the processes that a launcher started work together; with no launcher, nothing happens."""
    if not is_launched() or _joined():
        yield
        return
    with _peers():
        store = _join()
        try:
            yield
            _leave(store, rank(), size())
        finally:
            distributed.destroy_process_group()


def _join() -> Store:
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    store, rank, size = next(rendezvous("env://"))
    # The launcher keeps its store when it starts the processes anew; the addresses of those that are gone
    # must not be found in it.
    store = PrefixStore(_name_of_start(store, rank, size), store)
    # Tensors on a processor go through gloo, those on GPUs through nccl.
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size)
    return store


def _leave(store: Store, rank: int, size: int) -> None:
    """Wait until all are done: who goes at once might break a connection on which another still receives.

    The first, which may be the one that keeps the store, goes last. All is done, so nothing is lost if one of
    them does not answer.
    """
    patience = timedelta(seconds=60)
    with suppress(distributed.DistError):
        store.set(f"done/{rank}", "")
        try:
            store.wait([f"done/{peer}" for peer in range(size)], patience)
        finally:
            store.set(f"left/{rank}", "")
        if rank == 0:
            store.wait([f"left/{peer}" for peer in range(size)], patience)


def _name_of_start(store: Store, rank: int, size: int, patience: float = 1800.0) -> str:
    """A name that the processes of this start agree on, and that no other start has had.

    Each writes a word of its own; the name is made of all the words. What a process finds may be the words of
    those that are gone. So each also writes the name it has made, and waits until all have made the same:
    those that are gone cannot have known its new word. It waits `patience` seconds, as many as torch does.
    """
    store.set(f"obverse/word/{rank}", uuid4().hex)
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        words = [store.get(f"obverse/word/{peer}") for peer in range(size)]
        name = sha256(b"".join(words)).hexdigest()
        store.set(f"obverse/name/{rank}", name)
        if all(store.get(f"obverse/name/{peer}") == name.encode() for peer in range(size)):
            return f"obverse/{name}"
        time.sleep(0.05)
    raise distributed.DistStoreError("the processes have not found each other")


@contextmanager
def _peers() -> Iterator[None]:
    """What torch says when a connection breaks, as one sentence."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, ObverseError) or not _is_connection(error):
            raise
        do = (
            "torchrun starts all again, as often as --max-restarts says"
            if may_restart()
            else "to have all started again, give torchrun --max-restarts"
        )
        raise PeerLost(
            f"expected an answer of all {os.environ['WORLD_SIZE']} processes; got none of one of them; "
            f"see its own output for why it stopped; {do}"
        ) from error


def _is_connection(error: RuntimeError) -> bool:
    return isinstance(error, distributed.DistError) or "gloo" in str(error).lower()


def share(count: int) -> tuple[int, int]:
    """(start, stop) of the part of `count` that is this process's own; the parts differ by at most one."""
    return count * rank() // size(), count * (rank() + 1) // size()


def total(value: float) -> float:
    """The sum over the processes, the same number in each."""
    if size() == 1:
        return value
    summed = torch.tensor(value, dtype=torch.float64)
    distributed.all_reduce(summed)
    return summed.item()


def any_of(flag: bool) -> bool:
    """Whether it is true in any process."""
    return total(float(flag)) > 0


def by_first(make: Callable[[], Value]) -> Value:
    """What `make` returns in the first process, which alone calls it; its error, if it has one, for all."""
    if size() == 1:
        return make()
    outcome: list[Any] = [None, None]  # the value, the sentence of an error
    failure: ObverseError | None = None
    if rank() == 0:
        try:
            outcome[0] = make()
        except ObverseError as error:
            failure, outcome[1] = error, str(error)
    distributed.broadcast_object_list(outcome)
    if failure is not None:
        raise failure
    if outcome[1] is not None:
        raise ObverseError(outcome[1])
    result: Value = outcome[0]
    return result


def by_all(make: Callable[[], Value]) -> Value:
    """What `make` returns here; if it fails in any process, an error in all of them."""
    if size() == 1:
        return make()
    failure: ObverseError | None = None
    result: Value | None = None
    try:
        result = make()
    except ObverseError as error:
        failure = error
    sentences = _gathered("" if failure is None else str(failure))
    if failure is not None:
        raise failure
    for number, sentence in enumerate(sentences):
        if sentence:
            raise ObverseError(f"process {number} of {size()}: {sentence}")
    assert result is not None
    return result


class _Loss(nn.Module):
    """The loss of a batch as a module that has the net's parameters, which is what torch wants to see."""

    def __init__(self, net: nn.Module, loss: Callable[[Sequence[Any]], Tensor]) -> None:
        super().__init__()
        self.net, self.loss = net, loss

    def forward(self, parts: Sequence[Any]) -> Tensor:
        present = [part for part in parts if len(part)]
        losses = [self.loss(present)] if present else []
        if len(present) < len(parts):  # nothing, but with a gradient for every weight: all must have one
            losses += [weight.flatten()[:0].sum() for weight in self.net.parameters()]
        return torch.stack(losses).sum()


def summed(net: nn.Module, loss: Callable[[Sequence[Any]], Tensor]) -> Callable[[Sequence[Any]], Tensor]:
    """`loss(parts)`, whose backward() leaves in each process the sum of the gradients of all.

    `parts` is what this process has of each kind of sample in a batch; where there are more processes than
    samples, some of them are empty.

    The sum, not torch's mean: for that each process would have to make its loss as many times larger as there
    are processes, and the gradients of fp16 would overflow where those of one process do not.
    """
    if size() == 1:
        return loss
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in net.modules()):
        raise BadInput(
            "a net without batch norm for several processes",
            got="batch norm, whose means would be over each process's part of a batch",
            do="use one process, or leave norm off",
        )
    together = nn.parallel.DistributedDataParallel(_Loss(net, loss))
    # torch looks at annotations, and does not know those that are text.
    together.register_comm_hook(None, lambda state, bucket: _add_up(bucket))
    return together


def _add_up(bucket: GradBucket) -> torch.futures.Future[Tensor]:
    work = distributed.all_reduce(bucket.buffer(), async_op=True)
    added: torch.futures.Future[Tensor] = work.get_future().then(lambda done: done.value()[0])
    return added


def refuse_several(command: str) -> None:
    """An error for a command that would do the same in each process; the first says it, the others leave."""
    if is_launched() and int(os.environ["WORLD_SIZE"]) > 1:
        if not speaks():
            raise SystemExit(2)
        raise BadInput(
            f"one process for `{command}`",
            got=f"{os.environ['WORLD_SIZE']}, started by torchrun",
            do="start it without torchrun",
        )
