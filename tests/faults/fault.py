"""What a seeded fault is, and how it is put in and taken out again."""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Fault:
    """A plausible mistake in one function, which the suites must catch.

    Attributes
    ----------
    name
        Topic and mistake, unique in the catalogue.
    description
        What is wrong.
    target
        The function: module, colon, name in the module.
    make
        Makes the faulty function of the right one.
    checks
        Patterns (of ``fnmatch``) of the ids of checks that call the function. The first is to notice the fault: the
        cheapest one. Where no suite prints what is wrong, they are tests instead: module, colon, function.
    """

    name: str
    description: str
    target: str
    make: Callable[[Function], Function]
    checks: tuple[str, ...]


@dataclass
class Calls:
    """Calls of a faulty function.

    Attributes
    ----------
    count
        How many there were, or fewer where threads counted at once; 0 only if there was none.
    """

    count: int = 0


def _forward(*arguments: Any, **options: Any) -> Any:
    function: Any = "the faulty function"
    return function(*arguments, **options)


@contextmanager
def seeded(fault: Fault) -> Iterator[Calls]:
    """Put a fault in for the time of a ``with`` block.

    The function keeps its identity and is given other code. So the fault is everywhere that a reference to it is kept:
    where it was imported by name, and in tables, partials and dataclasses. What functions of this package remember of
    earlier calls is forgotten, before and after. Other processes see nothing of it, unless they are forked inside.

    Parameters
    ----------
    fault
        The fault.

    Yields
    ------
    The calls of the faulty function so far.

    Raises
    ------
    TypeError
        If the target is no Python function: a compiled one is copied into its callers, and must be replaced there.
    """
    function = _function(fault.target)
    kept = function.__code__, function.__defaults__, function.__kwdefaults__
    original = FunctionType(kept[0], function.__globals__, function.__name__, kept[1])
    original.__kwdefaults__ = kept[2]
    calls, faulty = Calls(), fault.make(original)

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.count += 1
        return faulty(*arguments, **options)

    code = _forward.__code__
    constants = tuple(counted if constant == "the faulty function" else constant for constant in code.co_consts)
    forget()
    function.__code__, function.__defaults__, function.__kwdefaults__ = code.replace(co_consts=constants), None, None
    try:
        yield calls
    finally:
        function.__code__, function.__defaults__, function.__kwdefaults__ = kept
        forget()


def _function(target: str) -> FunctionType:
    module, _, path = target.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    # What a class method binds to its class is a function as well, and so is what a property computes.
    found = getattr(found, "__func__", getattr(found, "fget", found))
    if hasattr(found, "cache_clear"):
        found = inspect.unwrap(found)
    # A function with free variables does not take other code.
    if not isinstance(found, FunctionType) or found.__closure__:
        raise TypeError(f"{target}: must be a function of a module or class, in Python")
    return found


def forget() -> None:
    """Make the functions of this package forget earlier calls."""
    for name, module in list(sys.modules.items()):
        if name.startswith("canaryproof."):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if callable(clear):
                    clear()
