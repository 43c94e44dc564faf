"""What the final version prints, and when a number of ours is a printed one."""

from dataclasses import dataclass
from fractions import Fraction


def half_unit(printed: str) -> Fraction:
    """Half a unit of the last printed digit."""
    return Fraction(1, 2 * 10 ** len(printed.partition(".")[2]))


def rounds_to(printed: str, low: float, high: float) -> bool:
    """Whether all numbers from low to high are printed like this."""
    middle, margin = Fraction(printed), half_unit(printed)
    return middle - margin <= Fraction(low) and Fraction(high) <= middle + margin


@dataclass(frozen=True)
class Row:
    """A row of Tables 3 or 4, as printed.

    Attributes
    ----------
    noise
        Noise multiplier.
    analytical
        Analytical ε; ``inf`` with clipping only.
    lower_all, estimate_all
        95% lower bound and estimate from all rounds' model deltas.
    lower_final, estimate_final
        95% lower bound and estimate from the final model.
    """

    noise: str
    analytical: str
    lower_all: str
    estimate_all: str
    lower_final: str
    estimate_final: str


def read_rows(printed: str) -> tuple[Row, ...]:
    """Return the rows of a table in the form of Tables 3 and 4, one a line."""
    return tuple(Row(*line.split()) for line in printed.strip().splitlines())


def read_quantiles(printed: str) -> tuple[tuple[str, int, int, tuple[str, ...]], ...]:
    """Return noise, runs, canaries a run and the quantiles of a table in the form of Table 5, one row a line."""
    cells = (line.split() for line in printed.strip().splitlines())
    return tuple((noise, int(runs), int(count), tuple(values)) for noise, runs, count, *values in cells)


TABLE_3 = read_rows("""
    0       inf  6.240  45800  2.88   4.60
    0.0496  300  6.238  382    1.11   1.97
    0.0986  100  5.05   89.4   0.688  1.18
    0.2317  30   0.407  2.693  0.311  0.569
""")
TABLE_4 = read_rows("""
    0.0     inf  6.25   16300  6.86   8.87
    0.0487  300  6.25   258    2.59   3.71
    0.0958  100  5.46   76.9   1.34   2.05
    0.2207  30   1.42   5.97   0.623  0.992
""")
# Quantiles 0.1, 0.3, 0.5, 0.7 and 0.9 of ε over fifty experiments.
TABLE_5 = read_quantiles("""
    0.0496  1   1000  1.59  1.75  1.97  2.15  2.46
    0.0496  10  100   1.65  1.80  1.92  2.16  2.32
    0.0986  1   1000  0.81  1.06  1.18  1.33  1.54
    0.0986  10  100   0.87  1.03  1.16  1.36  1.78
""")
# Anderson's statistic by noise, for 1, 2, 4 and 8 presentations.
TABLE_6 = (
    ("0", (0.219, 0.225, 0.336, 0.366)),
    ("0.0496", (0.462, 0.242, 0.444, 0.576)),
    ("0.0986", (0.224, 0.369, 0.295, 0.445)),
    ("0.2317", (1.23, 0.636, 0.523, 0.255)),
)

CANARIES = 1000
PARAMETERS = {"StackOverflow": 4_100_000, "EMNIST": 1_200_000}
STACKOVERFLOW_CLIENTS, STACKOVERFLOW_ROUNDS, STACKOVERFLOW_COHORT = 341_000, 2048, 167
EMNIST_USERS, EMNIST_EPOCHS, EMNIST_ROUNDS, EMNIST_COHORT = 3383, 15, 500, 101
# δ = m^(−1.1). On EMNIST the printed noise fits no m but users × epochs: see ``final_noise``.
STACKOVERFLOW_DELTA = STACKOVERFLOW_CLIENTS**-1.1
EMNIST_DELTA = (EMNIST_USERS * EMNIST_EPOCHS) ** -1.1
# Tables of estimates by number: rows, rounds of training, δ.
RESULTS = {
    3: (TABLE_3, STACKOVERFLOW_ROUNDS, STACKOVERFLOW_DELTA),
    4: (TABLE_4, EMNIST_ROUNDS, EMNIST_DELTA),
}
# Section 5.4. Fashion-MNIST's training examples are not printed there: Xiao, Rasul and Vollgraf (arXiv 1708.07747).
FASHION_EXAMPLES, FASHION_BATCH = 60_000, 128
