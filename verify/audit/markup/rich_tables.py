"""rich, so loaded that Python's random numbers stay as they were.

As it is loaded, rich draws from the generator of ``random``, by which a training may draw its members: a watch that was
made in such a training changed them.
"""

import random

_STATE = random.getstate()

from rich import box  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

random.setstate(_STATE)

__all__ = ["Console", "Table", "box"]
