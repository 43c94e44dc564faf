"""The module that public classes and functions say they are of, and the attributes that have left them."""

from collections.abc import Callable
from typing import Any, TypeVar

from canaryproof.kernels.successors import SUCCESSORS, current_name

_Public = TypeVar("_Public", bound=type | Callable[..., object])


def set_module(name: str) -> Callable[[_Public], _Public]:
    """Let a class or function say that it is of the module that users import it from, as numpy's ``set_module`` does.

    A pickle then names that module, and can be read when the code has moved. Attributes that have left a class go on
    by their successors' names.
    """

    def of_module(public: _Public) -> _Public:
        public.__module__ = name
        if isinstance(public, type) and public.__name__ in SUCCESSORS:
            public.__getattr__ = _successors_of(public.__name__)  # type: ignore[attr-defined]
        return public

    return of_module


def _successors_of(scope: str) -> Callable[[Any, str], Any]:
    def successor(instance: Any, name: str) -> Any:
        new = current_name(scope, name)
        # Without a successor, the error that Python would give, which may be one of a property.
        return object.__getattribute__(instance, name) if new == name else getattr(instance, new)

    return successor
