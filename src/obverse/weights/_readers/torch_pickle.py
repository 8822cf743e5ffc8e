"""Reads the pickles of torch.save as lists of instructions. Not for running them: nothing is called.

A pickle is a small program, and unpickling runs it. Here its instructions are only followed as far as they
put together mappings, lists, numbers, text and the descriptions of tensors; any other name that it wants to
call is refused before anything happens. Memory is bounded by the length of the pickle.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass
from typing import Any, BinaryIO

import torch

from ..._core import BadInput
from .stored import printable

DO = "save only the tensors: torch.save(net.state_dict(), path), or better as .safetensors"
_STORAGES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "ComplexDoubleStorage": torch.complex128,
    "ComplexFloatStorage": torch.complex64,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}
_REBUILD = {"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3"}
_PARAMETER = {"_rebuild_parameter", "_rebuild_parameter_with_state"}
# Values that a checkpoint may hold beside its tensors; what they are makes no difference here.
_IGNORED = {
    "torch.Size",
    "torch.device",
    "_codecs.encode",
    "__builtin__.set",
    "builtins.set",
    "collections.Counter",
    "numpy.dtype",
    "numpy.ndarray",
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",
    "numpy.core.multiarray.scalar",
    "numpy._core.multiarray.scalar",
}
_KNOWN = {
    "collections.OrderedDict",
    "torch.storage.UntypedStorage",
    *(f"torch.{name}" for name in _STORAGES),
    *(f"torch._utils.{name}" for name in _REBUILD | _PARAMETER),
    *_IGNORED,
}
_LITERALS = {
    "BININT",
    "BININT1",
    "BININT2",
    "LONG1",
    "BINFLOAT",
    "BINUNICODE",
    "SHORT_BINUNICODE",
    "SHORT_BINSTRING",
    "SHORT_BINBYTES",
    "BINBYTES",
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True)
class Name:
    """What a pickle would import."""

    path: str


@dataclass(frozen=True)
class Storage:
    """A run of `count` numbers, kept under `key` elsewhere in the file."""

    key: str
    dtype: torch.dtype
    count: int


@dataclass(frozen=True)
class Described:
    """A tensor as the pickle describes it; nothing of it is checked yet."""

    storage: Storage
    dtype: torch.dtype
    offset: Any
    shape: tuple[Any, ...]
    stride: tuple[Any, ...]


# Looked up here, not in torch: there a name may bring in a whole package.
_DTYPES = {name: one for name, one in vars(torch).items() if isinstance(one, torch.dtype)}
MOST_SIDES = 64  # of a tensor, in torch


def read_pickle(stream: BinaryIO, where: str, storages: dict[str, Storage] | None = None) -> Any:
    """What one pickle describes: dict, list, tuple, numbers, text, `Described`; None for all else.

    The storages that it refers to are put into `storages`.
    """
    machine = _Machine(where, {} if storages is None else storages)
    try:
        return machine.run(stream)
    except BadInput:
        raise
    except Exception as error:  # a stack that runs empty, a mark that is missing, text that is no text, …
        got = printable(str(error))
        raise BadInput(f"a sound pickle in {where}", got=got, do="download or save it again") from None


class _Machine:
    """The pickle's stack, its marks and its memory.

    What is on the stack may hold itself a million times over: it is never compared, printed or walked here.
    """

    def __init__(self, where: str, storages: dict[str, Storage]) -> None:
        self.where = where
        self.storages = storages
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memory: dict[int, Any] = {}

    def run(self, stream: BinaryIO) -> Any:
        for opcode, argument, _ in pickletools.genops(stream):
            if opcode.name == "STOP":
                return self.stack.pop()
            self.step(opcode.name, argument)
        raise ValueError("no end")

    def step(self, opcode: str, argument: Any) -> None:
        push, pop = self.stack.append, self.stack.pop
        if opcode in _LITERALS:
            push(argument)
        elif opcode in _CONSTANTS:
            push(_CONSTANTS[opcode])
        elif opcode in ("BINPUT", "LONG_BINPUT"):
            self.memory[argument] = self.stack[-1]
        elif opcode == "MEMOIZE":
            self.memory[len(self.memory)] = self.stack[-1]
        elif opcode in ("BINGET", "LONG_BINGET"):
            push(self.memory[argument])
        elif opcode == "MARK":
            self.marks.append(len(self.stack))
        elif opcode == "TUPLE":
            push(tuple(self.since_mark()))
        elif opcode in _TUPLES:
            push(tuple(self.last(_TUPLES[opcode])))
        elif opcode == "EMPTY_LIST":
            push([])
        elif opcode in ("APPEND", "APPENDS"):
            items = self.last(1) if opcode == "APPEND" else self.since_mark()
            self.top(list).extend(items)
        elif opcode == "EMPTY_DICT":
            push({})
        elif opcode in ("SETITEM", "SETITEMS"):
            items = self.last(2) if opcode == "SETITEM" else self.since_mark()
            pairs = zip(items[::2], items[1::2], strict=True)
            # Tensors have names; a number can only be an optimizer's. Numbers can also be chosen so that they
            # all have one hash, and then a dict takes a time that grows with their square; text cannot.
            self.top(dict).update((key, value) for key, value in pairs if isinstance(key, str))
        elif opcode == "GLOBAL":
            push(self.named(*argument.split(" ")))
        elif opcode == "STACK_GLOBAL":
            push(self.named(*self.last(2)))
        elif opcode == "REDUCE":
            name, arguments = self.last(2)
            push(self.called(name, arguments))
        elif opcode == "BUILD":  # attributes: of a state dict, which has some, or of what is ignored
            pop()
            if self.stack[-1] is not None:
                self.top(dict)
        elif opcode == "BINPERSID":
            push(self.storage(pop()))
        elif opcode not in ("PROTO", "FRAME"):
            raise self.refusal(f"the instruction {opcode}, which no state dict needs")

    def last(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise ValueError("an empty stack")
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken

    def since_mark(self) -> list[Any]:
        return self.last(len(self.stack) - self.marks.pop())

    def top(self, kind: type) -> Any:
        if type(self.stack[-1]) is not kind:
            raise ValueError(f"{type(self.stack[-1]).__name__} where a {kind.__name__} belongs")
        return self.stack[-1]

    def named(self, module: Any, name: Any) -> Name:
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError("a name that is no text")
        path = f"{module}.{name}"
        if path not in _KNOWN and not (module == "torch" and name in _DTYPES):
            raise self.refusal(f"a pickle that calls {printable(path)}; nothing of it was run")
        return Name(path)

    def called(self, name: Any, arguments: Any) -> Any:
        """What the call would give, put together without calling."""
        path = name.path if isinstance(name, Name) else ""
        last = path.rpartition(".")[2]
        if path in _IGNORED:
            return None
        if last in _PARAMETER and isinstance(arguments[0], Described):
            return arguments[0]
        if last in _REBUILD and isinstance(arguments[0], Storage):
            storage, offset, shape, stride = arguments[:4]
            dtype = storage.dtype
            if last == "_rebuild_tensor_v3":
                dtype = _DTYPES[arguments[6].path.removeprefix("torch.")]
            # Kept as they are: a copy of one long list for each tensor would fill the memory.
            if any(type(one) is not tuple or len(one) > MOST_SIDES for one in (shape, stride)):
                raise ValueError("a shape or strides that are none")
            return Described(storage, dtype, offset, shape, stride)
        if last == "OrderedDict" and arguments == ():
            return {}
        raise self.refusal(f"a call of {path or 'no function'} that no state dict needs")

    def storage(self, identity: Any) -> Storage:
        """A persistent id: ("storage", type, key, device, count), in old files with a view of another."""
        if type(identity) is not tuple or len(identity) not in (5, 6):
            raise ValueError("a reference to a storage of another form")
        kind, name, key, _, count, *view = identity
        if kind != "storage" or not isinstance(name, Name) or view not in ([], [None]):
            raise self.refusal("a reference to something that is no storage")
        if type(count) is not int or count < 0 or not isinstance(key, str):
            raise ValueError("a storage without a size or a name")
        dtype = _STORAGES.get(name.path.removeprefix("torch."), torch.uint8)
        found = Storage(key, dtype, count)
        self.storages.setdefault(key, found)
        return found

    def refusal(self, got: str) -> BadInput:
        return BadInput(f"tensors and plain values in {self.where}", got=got, do=DO)
