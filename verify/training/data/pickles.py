"""Reading pickles without unpickling: nothing in the file is imported, called or executed.

A pickle is a program for a small stack machine. This one knows the instructions with which protocols 2 to 4 write
dictionaries, lists, tuples, strings, bytes, whole numbers and numpy's arrays of numbers, and refuses all others. Of the
functions that such a file calls it knows three by their names, and does what they would do to bytes by itself. The
instructions are those documented in Python's ``pickletools``, which also cuts the file into them.

Memory is at most some multiple of the file's size: an array's shape must fit bytes that are there, the memo is a
dictionary, and what repeated calls make is counted.
"""

import io
import math
import pickletools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Twice what a batch of CIFAR-10 has, and some thirty times its instructions.
LARGEST = 2**26
_MOST_INSTRUCTIONS = 10**6
_PROTOCOLS = (2, 3, 4)
_PLAIN = re.compile(r"[biuf][1248]")
_FUNCTIONS = {
    "numpy.core.multiarray._reconstruct": "array",
    # Its name since numpy 2.
    "numpy._core.multiarray._reconstruct": "array",
    "numpy.dtype": "dtype",
    "numpy.ndarray": "ndarray",
    # How Python 3 writes bytes in protocol 2.
    "_codecs.encode": "encode",
}


def load(content: bytes) -> dict[str, Any]:
    """Read a pickled dictionary.

    Parameters
    ----------
    content
        The pickle.

    Returns
    -------
    The dictionary, whose keys may be text or, as in Python 2, bytes. Its values, and what lists and tuples among them
    hold, are bytes, text, whole numbers, True, False, None, lists, tuples and dictionaries; arrays are values of the
    dictionary itself.

    Raises
    ------
    ValueError
        If it is no pickle, or holds something else; names the instruction and its place.
    """
    if len(content) > LARGEST:
        raise ValueError(f"must have at most {LARGEST} bytes")
    machine = _Machine()
    place = 0
    try:
        for count, (instruction, argument, position) in enumerate(pickletools.genops(io.BytesIO(content))):
            place = position or 0
            if count == _MOST_INSTRUCTIONS:
                raise _RefusedError(f"must have at most {_MOST_INSTRUCTIONS} instructions")
            machine.run(instruction.name, argument)
    except _RefusedError as error:
        raise ValueError(f"byte {place}: {error}") from error
    except (ValueError, OverflowError) as error:
        reason = str(error).partition("\n")[0][:100]
        raise ValueError(f"is not a readable pickle ({reason})") from error
    return machine.result()


class _RefusedError(Exception):
    """An instruction that is not known, or not where it stands."""


class _Function:
    """One of the functions, of which only the name is known."""

    def __init__(self, name: str):
        self.name = name


class _Type:
    """A type of numbers: its code, and its byte order once the file has said it."""

    def __init__(self, code: str):
        self.code, self.order = code, ""


class _Array:
    """An array, empty until the file has said what it holds."""

    def __init__(self) -> None:
        self.values: NDArray[Any] | None = None


class _Machine:
    """The stack, the places that are marked on it, and the memo."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._made = 0

    def run(self, name: str, argument: Any) -> None:
        """Carry out one instruction."""
        if name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _ARGUMENTS:
            self._stack.append(_ARGUMENTS[name](argument))
        elif name in _ACTIONS:
            _ACTIONS[name](self, argument)
        else:
            raise _RefusedError(f"instruction {name} has no place in a table of numbers")

    def result(self) -> dict[str, Any]:
        """Return the dictionary on the stack."""
        content = self._stack[-1] if len(self._stack) == 1 else None
        if not isinstance(content, dict):
            raise ValueError("must be a pickled dictionary")
        return {key: value.values if isinstance(value, _Array) else value for key, value in content.items()}

    def last(self, count: int) -> list[Any]:
        """Take so many values from the stack."""
        start = len(self._stack) - count
        if start < (self._marks[-1] if self._marks else 0):
            raise _RefusedError("takes from an empty stack")
        values = self._stack[start:]
        del self._stack[start:]
        return values

    def marked(self) -> list[Any]:
        """Take the values after the last mark."""
        if not self._marks:
            raise _RefusedError("needs a mark")
        start = self._marks.pop()
        values = self._stack[start:]
        del self._stack[start:]
        return values

    def protocol(self, number: int) -> None:
        if number not in _PROTOCOLS:
            raise _RefusedError(f"protocol must be one of 2, 3 and 4, not {number}")

    def mark(self, _: None) -> None:
        self._marks.append(len(self._stack))

    def nothing(self, _: Any) -> None:
        """Do nothing, as where a frame begins or the pickle ends."""

    def put(self, index: int | None) -> None:
        [value] = self.last(1)
        self._stack.append(value)
        self._memo[len(self._memo) if index is None else index] = value

    def get(self, index: int) -> None:
        if index not in self._memo:
            raise _RefusedError("reads a place of the memo that is empty")
        self._stack.append(self._memo[index])

    def empty_dictionary(self, _: None) -> None:
        self._stack.append({})

    def empty_list(self, _: None) -> None:
        self._stack.append([])

    def tuple_of(self, values: list[Any]) -> None:
        self._stack.append(tuple(values))

    def append(self, values: list[Any]) -> None:
        target = self._target(list)
        target.extend(values)

    def set_items(self, values: list[Any]) -> None:
        if len(values) % 2:
            raise _RefusedError("needs a value for each key")
        target = self._target(dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            target[_text(key)] = value

    def _target(self, kind: type) -> Any:
        [value] = self.last(1)
        if type(value) is not kind:
            raise _RefusedError(f"must find a {kind.__name__} on the stack")
        self._stack.append(value)
        return value

    def function(self, name: str) -> None:
        if name not in _FUNCTIONS:
            raise _RefusedError(f"{name[:60]!r} has no place in a table of numbers, and is not called")
        self._stack.append(_Function(_FUNCTIONS[name]))

    def function_on_stack(self) -> None:
        module, name = self.last(2)
        self.function(f"{_text(module)}.{_text(name)}")

    def call(self, _: None) -> None:
        function, arguments = self.last(2)
        if type(function) is not _Function or type(arguments) is not tuple:
            raise _RefusedError("must call a function")
        self._stack.append(self._called(function.name, arguments))

    def _called(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if name == "array" and len(arguments) == 3:
            kind, shape, code = arguments
            if type(kind) is _Function and kind.name == "ndarray" and shape == (0,) and code in ("b", b"b"):
                return _Array()
        if name == "dtype" and arguments and arguments[1:] in ((False, True), ()):
            code = _text(arguments[0])
            if _PLAIN.fullmatch(code):
                return _Type(code)
            raise _RefusedError(f"type of numbers {code[:20]!r} is not known")
        if name == "encode" and arguments[1:] == ("latin1",) and isinstance(arguments[0], str):
            self._made += len(arguments[0])
            if self._made > LARGEST:
                raise _RefusedError(f"makes more than {LARGEST} bytes")
            return arguments[0].encode("latin1")
        raise _RefusedError(f"calls {name} with other arguments than numpy does")

    def build(self, _: None) -> None:
        target, state = self.last(2)
        self._stack.append(target)
        if type(state) is tuple and type(target) is _Type and len(state) == 8:
            version, order, *rest = state
            if version == 3 and rest == [None, None, None, -1, -1, 0] and _text(order) in ("|", "<", ">"):
                target.order = _text(order)
                return
        if type(state) is tuple and type(target) is _Array and len(state) == 5 and target.values is None:
            target.values = _array(*state)
            return
        raise _RefusedError("must set what an array or its type holds, and once")


def _text(value: Any) -> str:
    """Return text that Python 2 may have written as bytes."""
    if isinstance(value, bytes):
        return value.decode("latin1")
    if not isinstance(value, str):
        raise _RefusedError("a key or name must be text")
    return value


def _array(version: Any, shape: Any, kind: Any, by_columns: Any, content: Any) -> NDArray[Any]:
    if version != 1 or type(kind) is not _Type or not isinstance(content, bytes):
        raise _RefusedError("an array must be of numbers")
    if type(shape) is not tuple or not all(type(size) is int and size >= 0 for size in shape):
        raise _RefusedError("an array's shape must be whole numbers")
    dtype = np.dtype(kind.order.strip("|") + kind.code)
    # Without a bound on the axes the product itself might be long.
    if len(shape) > 4 or math.prod(shape) * dtype.itemsize != len(content):
        raise _RefusedError("an array's shape must have at most 4 axes and fit its bytes")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if by_columns else "C")


_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_ARGUMENTS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "BINUNICODE", "SHORT_BINUNICODE"), lambda value: value),
    **dict.fromkeys(("BINBYTES", "SHORT_BINBYTES"), lambda value: value),
    # Python 2's strings, which pickletools takes for text.
    **dict.fromkeys(("BINSTRING", "SHORT_BINSTRING"), lambda value: value.encode("latin1")),
}
_ACTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": _Machine.protocol,
    "FRAME": _Machine.nothing,
    "STOP": _Machine.nothing,
    "MARK": _Machine.mark,
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "MEMOIZE"), _Machine.put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.get),
    "EMPTY_DICT": _Machine.empty_dictionary,
    "EMPTY_LIST": _Machine.empty_list,
    "TUPLE": lambda machine, _: machine.tuple_of(machine.marked()),
    "TUPLE1": lambda machine, _: machine.tuple_of(machine.last(1)),
    "TUPLE2": lambda machine, _: machine.tuple_of(machine.last(2)),
    "TUPLE3": lambda machine, _: machine.tuple_of(machine.last(3)),
    "APPEND": lambda machine, _: machine.append(machine.last(1)),
    "APPENDS": lambda machine, _: machine.append(machine.marked()),
    "SETITEM": lambda machine, _: machine.set_items(machine.last(2)),
    "SETITEMS": lambda machine, _: machine.set_items(machine.marked()),
    # pickletools puts a space between module and name.
    "GLOBAL": lambda machine, argument: machine.function(argument.replace(" ", ".", 1)),
    "STACK_GLOBAL": lambda machine, _: machine.function_on_stack(),
    "REDUCE": _Machine.call,
    "BUILD": _Machine.build,
}
