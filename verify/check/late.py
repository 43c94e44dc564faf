"""Functions in tables, looked up when they are called."""

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any


def late(module: ModuleType, name: str, **options: Any) -> Callable[..., Any]:
    """Return a function of a module as it is when it is called, not as it was when a table was made of it.

    Whoever replaces the function in its module, to seed a fault or to try another, then sees what the checks say of it.
    """

    @wraps(getattr(module, name))
    def call(*arguments: Any) -> Any:
        return getattr(module, name)(*arguments, **options)

    return call
