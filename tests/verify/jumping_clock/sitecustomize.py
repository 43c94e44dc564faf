"""Imported by every Python that finds it: a clock that is set back and forth by a day all the time."""

import itertools
import time

_DAY = 86_400
_now, _jumps = time.time_ns, itertools.cycle((0, _DAY, -_DAY))

time.time_ns = lambda: _now() + next(_jumps) * 10**9
time.time = lambda: time.time_ns() / 1e9
