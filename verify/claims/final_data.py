"""Measurements of the final version that only its data sets decide."""

from canaryproof.verify.claims.deciding import needs_data
from canaryproof.verify.claims.final_printed import TABLE_3, TABLE_4, TABLE_5, TABLE_6
from canaryproof.verify.claims.final_text import DOCUMENT
from canaryproof.verify.claims.judging import claim
from canaryproof.verify.results import Check

_STACKOVERFLOW, _EMNIST, _FASHION = "StackOverflow (TFF)", "federated EMNIST (TFF)", "Fashion-MNIST"


def _measured(id: str, place: str, statement: str, data: str) -> Check:  # noqa: A002
    return claim(id, f"{DOCUMENT}, {place}", statement, needs_data(id, data))


CHECKS = (
    *(
        _measured(
            f"final.table{table}.row{number}.measured",
            f"Table {table}",
            f"at noise {row.noise}: lower bound {row.lower_all} and estimate {row.estimate_all} from all model deltas, "
            f"{row.lower_final} and {row.estimate_final} from the final model",
            data,
        )
        for table, rows, data in ((3, TABLE_3, _STACKOVERFLOW), (4, TABLE_4, _EMNIST))
        for number, row in enumerate(rows, 1)
    ),
    *(
        _measured(
            f"final.table5.row{number}.measured",
            "Table 5",
            f"fifty experiments at noise {noise} with {runs} × {canaries} canaries have the quantiles "
            f"{', '.join(quantiles)}",
            _STACKOVERFLOW,
        )
        for number, (noise, runs, canaries, quantiles) in enumerate(TABLE_5, 1)
    ),
    *(
        _measured(
            f"final.table6.row{number}.measured",
            "Table 6",
            f"at noise {noise} Anderson's statistics for 1, 2, 4 and 8 presentations are "
            f"{', '.join(f'{value:g}' for value in values)}",
            _STACKOVERFLOW,
        )
        for number, (noise, values) in enumerate(TABLE_6, 1)
    ),
    *(
        _measured(f"final.figure{number}.measured", f"Figure {number}", statement, data)
        for number, statement, data in (
            (1, "cosines separate more with 1, 2, 4, 8 presentations and less with noise", _STACKOVERFLOW),
            (2, "the estimate rises sharply from 1 to 8 presentations at every noise", _STACKOVERFLOW),
            (3, "cosines separate more with 1, 2, 4, 8 presentations and less with noise", _EMNIST),
            (4, "the estimate rises sharply from 1 to 8 presentations at every noise", _EMNIST),
        )
    ),
    _measured("final.section5.1.accuracy", "Section 5.1", "1k canaries cost at most 0.1% of accuracy", _STACKOVERFLOW),
    _measured("final.section5.4.canife", "Section 5.4", "CANIFE's estimate is 0.879 ± 0.124", _FASHION),
    _measured(
        "final.section5.4.ours", "Section 5.4", "the estimate from 1000 + 1000 canaries is 6.76 ± 1.06", _FASHION
    ),
    _measured(
        "final.section5.4.cost",
        "Sections 1 and 5.4",
        "canaries add negligible computation, CANIFE's 2500 optimisation steps from a pool of 512 much",
        _FASHION,
    ),
)
