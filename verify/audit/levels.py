"""Levels of tests: of a check, of one of many parts, at each look, and the power at which an effect is stated."""

# Level of a check: all its tests, in both directions and at all looks, by Bonferroni. A claim's test is by the chance
# of what is printed where the null speaks of it, and by the chance of our draws elsewhere.
LEVEL = 1e-6
# Level of each of many small checks; and of tests whose p-values may be off tenfold, for a check that declares LEVEL.
PART_LEVEL = 1e-7
# Power at which the smallest noticed effect is stated.
POWER = 0.9
# The claimed epsilon where none is given: the smallest noticed effect of an audit is stated for it.
EPSILON = 3.0
# A sequential test looks at a sixteenth of its runs, at a quarter, and at all: its level is split evenly (Bonferroni).
_SHARES = (16, 4, 1)
LOOKS = len(_SHARES)


def looks(runs: int) -> tuple[int, ...]:
    """Numbers of runs after which a sequential test looks; it ends at the first at which it has seen enough.

    Where nothing is wrong all runs are made: what is saved is the time of a check that finds a fault.
    """
    return tuple(max(1, runs // share) for share in _SHARES)
