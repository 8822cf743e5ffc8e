"""Reads pickles of tensors and arrays as lists of instructions. Not for running them: nothing is called.

A pickle is a small program, and unpickling runs it. Here its instructions are only followed as far as they
put together mappings, lists, numbers, text and the descriptions of tensors, NumPy arrays and the modules of
TorchScript; any other name that it wants to call is refused before anything happens. Memory is bounded by the
length of the pickle, without the bytes of arrays.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass
from typing import Any, BinaryIO

import torch

from ..._core import BadInput
from .pickle_arrays import CALLED, LONG, Array, Raw, Type, build, call
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
    "__builtin__.set",
    "builtins.set",
    "collections.Counter",
}
_LISTS = "torch.jit._pickle."  # TorchScript's lists and dicts with a type
_KNOWN = {
    "collections.OrderedDict",
    "torch.storage.UntypedStorage",
    *(f"torch.{name}" for name in _STORAGES),
    *(f"torch._utils.{name}" for name in _REBUILD | _PARAMETER),
    *(f"{_LISTS}build_{name}list" for name in ("int", "tensor", "double", "bool")),
    f"{_LISTS}restore_type_tag",
    *_IGNORED,
    *CALLED,
}
_SCRIPT = "__torch__"  # where TorchScript keeps its classes
_LITERALS = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINSTRING", "SHORT_BINBYTES"}
# Text and bytes that may be long, and how far into the instruction they begin.
_LONG = {
    "BINUNICODE": 5,
    "SHORT_BINUNICODE": 2,
    "BINSTRING": 5,
    "BINBYTES": 5,
    "BINBYTES8": 9,
    "BYTEARRAY8": 9,
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


class Module(dict[str, Any]):
    """An object of TorchScript: its attributes by name."""


# Looked up here, not in torch: there a name may bring in a whole package.
_DTYPES = {name: one for name, one in vars(torch).items() if isinstance(one, torch.dtype)}
MOST_SIDES = 64  # of a tensor, in torch
_MOST_STEPS = 10_000_000


def read_pickle(
    stream: BinaryIO, where: str, storages: dict[str, Storage] | None = None, start: int = 0
) -> Any:
    """What one pickle describes: dict, list, tuple, numbers, text, `Described`, `Array`; None for all else.

    The storages that it refers to are put into `storages`; `start` is where the stream begins in its file.
    """
    machine = _Machine(where, {} if storages is None else storages, start)
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

    def __init__(self, where: str, storages: dict[str, Storage], start: int) -> None:
        self.where = where
        self.storages = storages
        self.start = start
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memory: dict[int, Any] = {}

    def run(self, stream: BinaryIO) -> Any:
        for count, (opcode, argument, place) in enumerate(pickletools.genops(stream)):
            if opcode.name == "STOP":
                return self.stack.pop()
            if count > _MOST_STEPS:
                raise self.refusal(f"more than {_MOST_STEPS:,} instructions")
            if opcode.name in _LONG:
                self.stack.append(self.literal(opcode.name, argument, place or 0))
            else:
                self.step(opcode.name, argument)
        raise ValueError("no end")

    def literal(self, opcode: str, value: Any, place: int) -> Any:
        """Text or bytes as they are; long ones stay where they lie."""
        if len(value) <= LONG:
            return value
        is_text = "UNICODE" in opcode  # what Python 2 called a string is bytes
        length = len(value.encode("utf-8", "surrogatepass")) if is_text else len(value)
        return Raw(self.start + place + _LONG[opcode], length)

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
        elif opcode == "NEWOBJ":
            name, arguments = self.last(2)
            if not isinstance(name, Name) or not name.path.startswith(f"{_SCRIPT}.") or arguments != ():
                raise self.refusal("an object that is no module of TorchScript")
            push(Module())
        elif opcode == "BUILD":  # attributes: also of a state dict, and of what is ignored
            self.build(pop())
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

    def build(self, state: Any) -> None:
        target = self.stack[-1]
        if isinstance(target, Type | Array):
            build(target, state)
        elif isinstance(target, Module):
            if type(state) is dict:
                target.update(state)
        elif target is not None:
            self.top(dict)

    def named(self, module: Any, name: Any) -> Name:
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError("a name that is no text")
        path = f"{module}.{name}"
        script = path.startswith(f"{_SCRIPT}.")
        if path not in _KNOWN and not script and not (module == "torch" and name in _DTYPES):
            raise self.refusal(f"a pickle that calls {printable(path)}; nothing of it was run")
        return Name(path)

    def called(self, name: Any, arguments: Any) -> Any:
        """What the call would give, put together without calling."""
        path = name.path if isinstance(name, Name) else ""
        last = path.rpartition(".")[2]
        if path in _IGNORED:
            return None
        if path in CALLED:
            return call(path, arguments)
        if path.startswith(_LISTS):
            return arguments[0]
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
