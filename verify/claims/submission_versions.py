"""What the submission repeats of the first version and the final one of it: the same numbers, or other ones."""

import math

from canaryproof.verify.claims import final_printed
from canaryproof.verify.claims.judging import found
from canaryproof.verify.claims.submission_printed import SUBMISSION, TABLE_1, TABLE_2, TABLE_4, TABLE_6
from canaryproof.verify.claims.v1_judging import Judge, fixed, holds
from canaryproof.verify.claims.v1_printed import TABLE_3 as V1_TABLE_3
from canaryproof.verify.claims.v1_printed import TABLE_4 as V1_TABLE_4
from canaryproof.verify.results import Check, Outcome
from canaryproof.verify.suites.tables import CELLS


def judge_same(pairs: list[tuple[object, object]]) -> Outcome:
    """Judge that two documents print the same.

    Parameters
    ----------
    pairs
        What the submission prints, and what the other version does.
    """
    same = sum(a == b for a, b in pairs)
    return found(
        holds(same == len(pairs)), f"{same} of {len(pairs)} agree", differing=[p for p in pairs if p[0] != p[1]]
    )


def _table_1() -> Outcome:
    cells = {cell.epsilon: (cell.mean, cell.deviation) for cell in CELLS if cell.id.startswith("final.table2.")}
    return judge_same([((mean, deviation), cells[epsilon]) for _, epsilon, mean, deviation in TABLE_1])


def _table_2() -> Outcome:
    theirs = [
        (row.noise, row.analytical, row.lower_all, row.estimate_all, row.lower_final, row.estimate_final)
        for row in final_printed.TABLE_3
    ]
    ours = [(r.noise, r.analytical, r.lower_all, r.all_, r.lower_final, r.final) for r in TABLE_2]
    return judge_same(list(zip(ours, theirs, strict=True)))


def judge_first_version(name: str) -> Outcome:
    """Judge a column of Table 2 against the first version's, of the same setting at other noise.

    More noise on the same training tells less, so that all results from both versions should fall with the noise, up
    to their own error. That of an estimate from the final model is taken from Table 6: 0.34 at most where noise is
    added, for one of four pairs. For all iterates 20% of the estimate, thrice what the fit of 1000 cosines allows.

    Parameters
    ----------
    name
        ``all_`` or ``final``.
    """
    merged = sorted(
        (float(row.noise), float(getattr(row, name)), version)
        for version, table in (("v1", V1_TABLE_3), ("submission", TABLE_2))
        for row in table[1:]
    )
    rising = []
    for i, (noise, value, version) in enumerate(merged):
        for later_noise, later, other in merged[i + 1 :]:
            error = math.sqrt(2) * (0.34 if name == "final" else 0.2 * max(value, later))
            if other != version and later - value > 2 * error:
                rising.append(f"{value:g} at {noise:g} ({version}) but {later:g} at {later_noise:g} ({other})")
    zeros = [float(getattr(table[0], name)) for table in (V1_TABLE_3, TABLE_2)]
    return found(
        holds(not rising),
        f"{'; '.join(rising) or 'no pair contradicts the order'}; without noise {zeros[0]:g} and {zeros[1]:g}",
        merged=merged,
        rising=rising,
    )


def _claim(place: str, source: str, statement: str, judge: Judge) -> Check:
    return fixed(f"submission.{place}", f"{SUBMISSION}, {source}", statement, judge)


CHECKS: tuple[Check, ...] = (
    _claim("table1.versions", "Table 1", "Table 1 is the final version's Table 2", _table_1),
    _claim("table2.versions", "Table 2", "Table 2 is the final version's Table 3", _table_2),
    _claim(
        "table2.v1.all",
        "Table 2; first version, Table 3",
        "the estimates from all iterates agree with the first version's, of the same setting at other noise",
        lambda: judge_first_version("all_"),
    ),
    _claim(
        "table2.v1.final",
        "Table 2; first version, Table 3",
        "the estimates from the final model agree with the first version's, of the same setting at other noise",
        lambda: judge_first_version("final"),
    ),
    _claim(
        "table4.versions",
        "Table 4",
        "its statistics are the first version's",
        lambda: judge_same(list(zip(TABLE_4.values(), V1_TABLE_4.values(), strict=True))),
    ),
    _claim(
        "table6.versions",
        "Table 6",
        "Table 6 is the final version's Table 5",
        lambda: judge_same(list(zip(TABLE_6, final_printed.TABLE_5, strict=True))),
    ),
)
