"""Tables of the bounds that are kept for further audits, within a size in bytes."""

from collections.abc import Callable, Iterable
from dataclasses import astuple, is_dataclass
from functools import partial
from threading import Lock
from typing import ParamSpec, TypeVar

import numpy as np
from cachetools import LRUCache, cached
from cachetools.keys import hashkey

P = ParamSpec("P")
T = TypeVar("T")

# A table grows with the number of scores, so that a number of tables would limit nothing.
_LIMIT = 2**26
_OVERHEAD = 1024  # A key, and the objects around arrays


def _size(table: object) -> int:
    """Return the bytes of a table's arrays, and some for each object that holds them."""
    if isinstance(table, np.ndarray):
        return table.nbytes + _OVERHEAD
    if is_dataclass(table) and not isinstance(table, type):
        table = astuple(table)
    if isinstance(table, Iterable):
        return _OVERHEAD + sum(map(_size, table))
    return 0


TABLES: LRUCache[object, object] = LRUCache(_LIMIT, getsizeof=lambda table: _OVERHEAD + _size(table))
_LOCK = Lock()


def cached_table(function: Callable[P, T]) -> Callable[P, T]:
    """Keep the tables that a function has made, as long as all tables together take at most 64 MiB.

    A larger table is made anew each time. Of the others the one that was used least recently goes first.
    """
    return cached(TABLES, key=partial(hashkey, function.__qualname__), lock=_LOCK)(function)
