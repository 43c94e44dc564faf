"""Classes of what calls return, and of what that holds: for annotations and ``isinstance``.

Calls make their objects; nobody else needs to.
"""

from canaryproof import _names_of

__getattr__, __all__ = _names_of(__spec__)


def __dir__() -> list[str]:
    return __all__
