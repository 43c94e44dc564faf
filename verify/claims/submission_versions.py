"""What the submission repeats of the first version and the final one of it: the same numbers, or other ones."""

import math
from collections.abc import Mapping
from dataclasses import astuple

from canaryproof.verify.claims import estimate_law, final_printed
from canaryproof.verify.claims.final_printed import Row
from canaryproof.verify.claims.judging import LEVEL, found, holds
from canaryproof.verify.claims.submission_printed import (
    CANIFE,
    EMNIST,
    SETTING,
    SUBMISSION,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    TABLE_6,
)
from canaryproof.verify.claims.v1_judging import CANARIES, STACKOVERFLOW_DELTA, placed
from canaryproof.verify.claims.v1_printed import TABLE_1 as V1_TABLE_1
from canaryproof.verify.claims.v1_printed import TABLE_3 as V1_TABLE_3
from canaryproof.verify.claims.v1_printed import TABLE_4 as V1_TABLE_4
from canaryproof.verify.error_control import POWER
from canaryproof.verify.results import Check, Design, Outcome, Verdict
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


def judge_settings(pairs: Mapping[str, tuple[str, str]]) -> Outcome:
    """Judge that two versions print the same settings and results.

    Parameters
    ----------
    pairs
        What both print, by name.
    """
    differing = [f"{name} {one} and {other}" for name, (one, other) in pairs.items() if one != other]
    same = len(pairs) - len(differing)
    finding = f"{same} of {len(pairs)} agree" + (f"; not: {', '.join(differing)}" if differing else "")
    return found(holds(not differing), finding, pairs=dict(pairs))


def _table_1() -> Outcome:
    # The final version's cells hold numbers.
    cells = {cell.epsilon: (cell.mean, cell.deviation) for cell in CELLS if cell.id.startswith("final.table2.")}
    ours = [(float(mean), float(deviation)) for _, _, mean, deviation in TABLE_1]
    return judge_same([(pair, cells[float(row[1])]) for pair, row in zip(ours, TABLE_1, strict=True)])


def judge_without_noise(row: Row = TABLE_2[0], other: Row = V1_TABLE_3[0]) -> Outcome:
    """Judge whether two versions' results of one setting without noise can be those of two runs.

    Parameters
    ----------
    row, other
        The submission's row, and the first version's.
    """
    values = (float(row.estimate_final), float(other.estimate_final))
    p_value = estimate_law.same_mean(*values, STACKOVERFLOW_DELTA)
    pairs = [(float(a), float(b)) for a, b in zip(astuple(row)[2:], astuple(other)[2:], strict=True)]
    same = sum(a == b for a, b in pairs)
    verdict = Verdict.REFUTED
    if p_value >= LEVEL:
        verdict = Verdict.CONFIRMED if same == len(pairs) else Verdict.QUALIFIED
    listed = ", ".join(f"{a:g} and {b:g}" for a, b in pairs)
    finding = (
        f"{same} of {len(pairs)} numbers are equal ({listed}); that the final model's estimates are of two runs has "
        f"p = {p_value:.2g}"
    )
    noticed = estimate_law.noticed_beside(min(values), STACKOVERFLOW_DELTA, LEVEL)
    design = Design(
        "both printed estimates are by fitted from 1,000 independent normal cosines each, with the null's variance and "
        "one mean",
        LEVEL,
        f"they are of an ε of {min(values):g} and one of {noticed:.2g}",
        POWER,
        CANARIES,
    )
    return found(verdict, finding, design, pairs=pairs, p_value=p_value, level=LEVEL)


def judge_first_version(name: str) -> Outcome:
    """Judge a column of Table 2 against the first version's, of the same setting at other noise.

    More noise on the same training tells less, so that all results from both versions should fall with the noise, up
    to their own error. That of an estimate from the final model is taken from Table 6: 0.34 at most where noise is
    added, for one of four pairs. For all iterates 20% of the estimate, thrice what the fit of 1000 cosines allows.
    Lower bounds from all iterates are given none. These are allowances for what is printed, and no test: for one, the
    errors of estimates from the final model are as large as most of the estimates.

    Parameters
    ----------
    name
        Column: ``estimate_all``, ``lower_all`` or ``estimate_final``.
    """
    share = {"estimate_all": 0.2, "lower_all": 0.0}
    merged = sorted(
        (float(row.noise), float(getattr(row, name)), version)
        for version, table in (("v1", V1_TABLE_3), ("submission", TABLE_2))
        for row in table[1:]
    )
    rising = []
    for i, (noise, value, version) in enumerate(merged):
        for later_noise, later, other in merged[i + 1 :]:
            error = math.sqrt(2) * (share[name] * max(value, later) if name in share else 0.34)
            if other != version and later - value > 2 * error:
                rising.append(f"{value:g} at {noise:g} ({version}) but {later:g} at {later_noise:g} ({other})")
    zeros = [float(getattr(table[0], name)) for table in (V1_TABLE_3, TABLE_2)]
    return found(
        holds(not rising),
        f"{'; '.join(rising) or 'no pair contradicts the order'}; without noise {zeros[0]:g} and {zeros[1]:g}",
        merged=merged,
        rising=rising,
    )


_claim = placed("submission", SUBMISSION)

CHECKS: tuple[Check, ...] = (
    _claim("table1.versions", "Table 1", "Table 1 is the final version's Table 2", _table_1),
    _claim(
        "table1.v1",
        "Table 1; first version, Table 1",
        "Table 1 is the first version's, whose estimator is another",
        lambda: judge_same(list(zip(TABLE_1, V1_TABLE_1, strict=True))),
    ),
    _claim(
        "table2.versions",
        "Table 2",
        "Table 2 is the final version's Table 3",
        lambda: judge_same(list(zip(TABLE_2, final_printed.TABLE_3, strict=True))),
    ),
    _claim(
        "table2.v1.row1",
        "Table 2; first version, Table 3",
        "the results without noise are the first version's, of the same setting",
        judge_without_noise,
    ),
    _claim(
        "table2.v1.lower-all",
        "Table 2; first version, Table 3",
        "the lower bounds from all iterates agree with the first version's, of the same setting at other noise",
        lambda: judge_first_version("lower_all"),
    ),
    _claim(
        "table2.v1.all",
        "Table 2; first version, Table 3",
        "the estimates from all iterates agree with the first version's, of the same setting at other noise",
        lambda: judge_first_version("estimate_all"),
    ),
    _claim(
        "table2.v1.final",
        "Table 2; first version, Table 3",
        "the estimates from the final model agree with the first version's, of the same setting at other noise",
        lambda: judge_first_version("estimate_final"),
    ),
    _claim(
        "table3.row1.versions",
        "Table 3; final version, Table 4",
        "the results on EMNIST without noise are the final version's",
        lambda: judge_settings(
            {
                name: (getattr(TABLE_3[0], name), getattr(final_printed.TABLE_4[0], name))
                for name in ("lower_all", "estimate_all", "lower_final", "estimate_final")
            }
        ),
    ),
    _claim(
        "section5.versions",
        "Section 5; first version, Section 5",
        "the setting on StackOverflow, but for the number of clients, is the first version's",
        lambda: judge_settings(SETTING),
    ),
    _claim(
        "appendixD.versions",
        "Appendix D; final version, Section 5.2.1",
        "the setting on EMNIST is the final version's",
        lambda: judge_settings(EMNIST),
    ),
    _claim(
        "appendixH.versions",
        "Appendix H; final version, Section 5.4",
        "the comparison with CANIFE is the final version's",
        lambda: judge_settings(CANIFE),
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
