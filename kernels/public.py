"""The module that public classes and functions say they are of."""

from collections.abc import Callable
from typing import TypeVar

_Public = TypeVar("_Public", bound=type | Callable[..., object])


def set_module(name: str) -> Callable[[_Public], _Public]:
    """Let a class or function say that it is of the module that users import it from, as numpy's ``set_module`` does.

    A pickle then names that module, and can be read when the code has moved.
    """

    def of_module(public: _Public) -> _Public:
        public.__module__ = name
        return public

    return of_module
