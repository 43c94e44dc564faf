"""numba's cache on disk, made to notice what it does not look at: changed code that another file inlines.

numba keeps a compiled function until the file that holds it changes, and older versions take the file's date and size
for its contents, which some installers set alike for all versions of a package. Here what is kept depends on the
contents of all of our files with compiled functions.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import caching

_ROOT = Path(__file__).parents[1]


@cache
def digest() -> str:
    """Digest of all files of the package that have compiled functions."""
    found = hashlib.sha256()
    for path in sorted(_ROOT.rglob("*.py")):
        content = path.read_bytes()
        if b"from numba import" in content:
            found.update(f"{path.relative_to(_ROOT)} ".encode() + hashlib.sha256(content).digest())
    return found.hexdigest()


def _stamped(locator: Any) -> Any:
    stamp = _numbas(locator)
    return (stamp, digest()) if Path(locator._py_file).is_relative_to(_ROOT) else stamp


# A class that numba does not promise: without it caching is what numba makes of it, and a test of ours fails.
_locators: Any = getattr(caching, "_SourceFileBackedLocatorMixin", None)
if _locators is not None:
    _numbas = _locators.get_source_stamp
    _locators.get_source_stamp = _stamped
