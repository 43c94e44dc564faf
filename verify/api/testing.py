"""Checks for a test suite of your own: whether an adapter of a watch is sound."""

from canaryproof import _names_of

__getattr__, __all__ = _names_of(__spec__)


def __dir__() -> list[str]:
    return __all__
