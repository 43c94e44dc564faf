"""Numbers that the documents print: each once, a class a document, with its section; text where digits matter.

Documents that print the same are transcribed each for itself, so that a claim can compare them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from scipy.optimize import brentq


@dataclass(frozen=True)
class Row:
    """A row of a table of 95% lower bounds and estimates; ε is ``inf`` with clipping only.

    ``all``: from all rounds' model deltas; ``final``: from the final model.
    """

    noise: str
    analytical: str
    lower_all: str
    estimate_all: str
    lower_final: str
    estimate_final: str


_COLUMNS = ("lower_all", "estimate_all", "lower_final", "estimate_final")


def columns(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Return the four columns of results, as numbers."""
    return {name: [float(getattr(row, name)) for row in rows] for name in _COLUMNS}


def read_rows(printed: str) -> tuple[Row, ...]:
    """Return the rows of a table of bounds and estimates, one a line."""
    return tuple(Row(*line.split()) for line in printed.strip().splitlines())


# Noise multiplier, runs, canaries a run, and the quantiles below of ε over fifty experiments.
QuantileRow = tuple[str, int, int, tuple[str, ...]]
QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)


def read_quantiles(printed: str) -> tuple[QuantileRow, ...]:
    """Return the rows of a table of quantiles, one a line."""
    cells = (line.split() for line in printed.strip().splitlines())
    return tuple((noise, int(runs), int(count), tuple(values)) for noise, runs, count, *values in cells)


class Final:
    """Andrew et al., arXiv 2302.03098, final version."""

    # ε, mean and standard deviation of the estimate over simulations at d = 10⁶, k = 10³; and σ.
    TABLE_2 = (("1.0", "0.972", "0.148"), ("3.0", "3.04", "0.137"), ("10.0", "9.98", "0.190"))
    TABLE_2_NOISE = (("1.0", "4.22"), ("3.0", "1.54"), ("10.0", "0.541"))
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
    TABLE_5 = read_quantiles("""
        0.0496  1   1000  1.59  1.75  1.97  2.15  2.46
        0.0496  10  100   1.65  1.80  1.92  2.16  2.32
        0.0986  1   1000  0.81  1.06  1.18  1.33  1.54
        0.0986  10  100   0.87  1.03  1.16  1.36  1.78
    """)
    # Table 1 by category: method, what the auditor controls, and what it receives.
    TABLE_1: ClassVar[Mapping[str, Sequence[tuple[str, tuple[str, ...], tuple[str, ...]]]]] = {
        "central": (
            ("Jagielski et al. 2020", ("train data",), ("final",)),
            ("Zanella-Béguelin et al. 2023", ("train data",), ("final",)),
            ("Pillutla et al. 2023", ("train data",), ("final",)),
            ("Steinke et al. 2023", ("train data",), ("intermediate", "final")),
            ("Jagielski et al. 2023", ("train data",), ("intermediate",)),
            ("Nasr et al. 2023", ("train data", "noise", "minibatch"), ("intermediate", "final")),
        ),
        "federated": (
            ("Algorithm 2", ("client update",), ("final",)),
            ("Algorithm 3", ("client update",), ("intermediate",)),
            ("CANIFE", ("client sample", "noise", "minibatch"), ("intermediate",)),
        ),
    }
    # Anderson's statistic by noise, for 1, 2, 4 and 8 presentations.
    TABLE_6 = (
        ("0", (0.219, 0.225, 0.336, 0.366)),
        ("0.0496", (0.462, 0.242, 0.444, 0.576)),
        ("0.0986", (0.224, 0.369, 0.295, 0.445)),
        ("0.2317", (1.23, 0.636, 0.523, 0.255)),
    )
    # Sections 5.1 and 5.2.1.
    CANARIES = 1000
    PARAMETERS: ClassVar[Mapping[str, int]] = {"StackOverflow": 4_100_000, "EMNIST": 1_200_000}
    STACKOVERFLOW_CLIENTS, STACKOVERFLOW_ROUNDS, STACKOVERFLOW_COHORT = 341_000, 2048, 167
    EMNIST_USERS, EMNIST_EPOCHS, EMNIST_ROUNDS, EMNIST_COHORT = 3383, 15, 500, 101
    # δ = m^(−1.1). On EMNIST the printed noise fits no m but users × epochs: see ``final_noise``.
    STACKOVERFLOW_DELTA = STACKOVERFLOW_CLIENTS**-1.1
    EMNIST_DELTA = (EMNIST_USERS * EMNIST_EPOCHS) ** -1.1
    # Tables of estimates by number: rows, rounds of training, δ.
    RESULTS: ClassVar[Mapping[int, tuple[tuple[Row, ...], int, float]]] = {
        3: (TABLE_3, STACKOVERFLOW_ROUNDS, STACKOVERFLOW_DELTA),
        4: (TABLE_4, EMNIST_ROUNDS, EMNIST_DELTA),
    }
    # Section 5.2.1.
    EMNIST: ClassVar[Mapping[str, str]] = {
        "characters": "814k",
        "users": "3383",
        "parameters": "1.2M",
        "epochs": "15",
        "clients a round": "101",
        "client learning rate": "0.031",
        "server learning rate": "1.0",
        "momentum": "0.9",
        "batch": "16",
    }
    # Section 5.4: means and standard deviations of ε, and the setting.
    CANIFE, ONE_SHOT = ("0.879", "0.124"), ("6.76", "1.06")
    CANIFE_ANALYTICAL, CANIFE_NOISE = "34.5", "0.2"
    COMPARISON: ClassVar[Mapping[str, str]] = {
        "design pool": "512",
        "optimisation steps": "2500",
        "rounds between audits": "100",
        "scores an audit": "100",
        "clip norm": "1.0",
        "noise multiplier": CANIFE_NOISE,
        "batch": "128",
        "analytical ε": CANIFE_ANALYTICAL,
        "CANIFE's ε": " ± ".join(CANIFE),
        "the canaries' ε": " ± ".join(ONE_SHOT),
    }
    # Fashion-MNIST's training examples are not printed there: Xiao, Rasul and Vollgraf (arXiv 1708.07747).
    FASHION_EXAMPLES, FASHION_BATCH = 60_000, 128


class FirstVersion:
    """Andrew et al., arXiv 2302.03098v1."""

    # Noise multiplier, ε, mean and standard deviation of the estimate.
    TABLE_1 = (("4.22", "1.0", "0.972", "0.148"), ("1.54", "3.0", "3.04", "0.137"), ("0.541", "10.0", "9.98", "0.190"))
    TABLE_2 = (  # noise, ε, accuracy in % without and with 1,000 canaries
        ("0", "inf", "25.3", "25.3"),
        ("0.0644", "100k", "24.0", "23.9"),
        ("0.1023", "1000", "23.1", "23.1"),
        ("0.1836", "100", "21.5", "21.5"),
        ("0.2344", "50", "20.6", "20.5"),
    )
    TABLE_3 = read_rows("""
        0       inf   6.24   51300  3.91   5.49
        0.0644  100k  6.17   425    1.26   1.74
        0.102   1000  4.67   243    1.01   1.22
        0.1836  100   2.44   92.0   0.802  0.865
        0.2344  50    0.177  78.9   0.478  0.675
    """)
    # Anderson's statistic by noise, for these repetitions.
    TABLE_4: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "0": ("0.464", "0.590", "0.396", "0.407", "0.196"),
        "0.102": ("0.976", "0.422", "0.340", "0.432", "0.116"),
        "0.234": ("0.326", "0.157", "0.347", "0.951", "0.401"),
    }
    REPETITIONS = (1, 2, 3, 5, 10)
    WEAK_CRITICAL_VALUE = 0.574
    # Section 5.
    CANARIES, USERS, ROUNDS, COHORT = 1000, 341_000, 2048, 167
    DELTA = USERS**-1.1
    SETTING: ClassVar[Mapping[str, str]] = {
        "parameters": "4.1M",
        "rounds": "2048",
        "clients a round": "167",
        "client learning rate": "1.0",
        "server learning rate": "0.56",
        "canaries": "1k",
        "exponent of δ": "-1.1",
    }


class Submission:
    """Anonymous submission of Andrew et al., 2023."""

    # Noise multiplier, ε, mean and standard deviation of the estimate.
    TABLE_1 = (("4.22", "1.0", "0.972", "0.148"), ("1.54", "3.0", "3.04", "0.137"), ("0.541", "10.0", "9.98", "0.190"))
    TABLE_2 = read_rows("""
        0       inf  6.240  45800  2.88   4.60
        0.0496  300  6.238  382    1.11   1.97
        0.0986  100  5.05   89.4   0.688  1.18
        0.2317  30   0.407  2.693  0.311  0.569
    """)
    # As the final version's Table 1, but for what Steinke et al. and Nasr et al. receive.
    TABLE_5: ClassVar[Mapping[str, Sequence[tuple[str, tuple[str, ...], tuple[str, ...]]]]] = {
        "central": (
            *Final.TABLE_1["central"][:3],
            ("Steinke et al. 2023", ("train data",), ("final",)),
            Final.TABLE_1["central"][4],
            ("Nasr et al. 2023", ("train data", "noise", "minibatch"), ("intermediate",)),
        ),
        "federated": Final.TABLE_1["federated"],
    }
    TABLE_3 = read_rows("""
        0.0    inf   6.25   48300  3.86   5.72
        0.16   33.8  2.87   17.9   1.01   1.20
        0.18   28.1  2.32   12.0   0.788  1.15
        0.195  24.8  2.02   8.88   0.723  1.08
        0.25   16.9  0.896  3.86   0.550  0.818
        0.315  12.0  0.315  1.50   0.216  0.737
    """)
    # Anderson's statistic by noise, for 1, 2, 3, 5 and 10 repetitions.
    TABLE_4: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "0": ("0.464", "0.590", "0.396", "0.407", "0.196"),
        "0.1023": ("0.976", "0.422", "0.340", "0.432", "0.116"),
        "0.2344": ("0.326", "0.157", "0.347", "0.951", "0.401"),
    }
    TABLE_6 = read_quantiles("""
        0.0496  1   1000  1.59  1.75  1.97  2.15  2.46
        0.0496  10  100   1.65  1.80  1.92  2.16  2.32
        0.0986  1   1000  0.81  1.06  1.18  1.33  1.54
        0.0986  10  100   0.87  1.03  1.16  1.36  1.78
    """)
    # Section 5, without the number of clients, which our copy has as 34k.
    SETTING: ClassVar[Mapping[str, str]] = {
        "parameters": "4.1M",
        "rounds": "2048",
        "clients a round": "167",
        "client learning rate": "1.0",
        "server learning rate": "0.56",
        "canaries": "1k",
        "exponent of δ": "-1.1",
    }
    # Appendix D.
    EMNIST: ClassVar[Mapping[str, str]] = {
        "characters": "814k",
        "users": "3383",
        "parameters": "1.2M",
        "epochs": "5",
        "clients a round": "34",
        "client learning rate": "0.031",
        "server learning rate": "1.0",
        "momentum": "0.9",
        "batch": "16",
    }
    # Appendix H: means and standard deviations of ε, and the setting.
    CANIFE, CANARIES = ("0.879", "0.124"), ("6.76", "1.06")
    COMPARISON: ClassVar[Mapping[str, str]] = {
        "design pool": "512",
        "optimisation steps": "2500",
        "rounds between audits": "100",
        "scores an audit": "100",
        "clip norm": "1.0",
        "noise multiplier": "0.2",
        "batch": "128",
        "analytical ε": "34.5",
        "CANIFE's ε": " ± ".join(CANIFE),
        "the canaries' ε": " ± ".join(CANARIES),
    }


class Reviews:
    """Reviews of the submission, and the authors' answers."""

    ANALYTICAL, CANARIES_ESTIMATE = "34.5", "6.76"
    # The authors' sweep over d with k = √d: d in words, d, k, and by ε the mean and the standard deviation.
    SWEEP = (
        ("d10k", 10**4, 100, (("1", "0.98", "0.41"), ("3", "3.00", "0.46"), ("10", "9.89", "0.71"))),
        ("d100k", 10**5, 316, (("1", "1.05", "0.23"), ("3", "3.00", "0.31"), ("10", "10.05", "0.41"))),
        ("d1M", 10**6, 1000, (("1", "0.99", "0.14"), ("3", "2.96", "0.15"), ("10", "10.00", "0.23"))),
        ("d10M", 10**7, 3162, (("1", "1.00", "0.07"), ("3", "3.00", "0.08"), ("10", "10.01", "0.10"))),
    )


@dataclass(frozen=True)
class Task:
    """A training of CANIFE's Appendix C.3 at ε = 50: ``every`` so many rounds there is an audit."""

    id: str
    name: str
    cohort: int
    users: int
    epochs: int
    epoch_rounds: int
    rounds: int
    every: int
    audits: int

    @property
    def data(self) -> str:
        """The data set that decides its results."""
        return f"{self.name} in LEAF's split"

    @property
    def sampling(self) -> float:
        """Probability that a client takes part in a round."""
        return self.cohort / self.users


class Canife:
    """Maddock et al., arXiv 2210.02912."""

    # Attack scores an audit, and δ of the per-round estimate as Section 3.4 sets it: 1/n.
    TRIALS = 100
    SCORES_DELTA = 1.0 / TRIALS
    # Half the trials have the canary, half do not (Section 4.1).
    HALF = TRIALS // 2
    # δ of training is printed nowhere; the authors' public code (github.com/facebookresearch/canife) has this one as
    # the default, for one round's ε and for ε̂_r too.
    CODE_DELTA = 1e-5
    # The largest ε̂_r, as the text says (Section 3.4).
    CAP = "3.89"
    TRAINED_EPSILON = 50.0
    # Section 4.1: noise, and the mean standard deviations of the scores with it (Figure 3b) and without (Figure 3a).
    TOY_SIGMA, DEVIATION, NOISELESS = "0.423", "0.478", "0.006"
    # The design pool of Figure 3a, and the design iterations of the timings in Section 4.3.
    POOL, ITERATIONS = 512, 2500
    # Test accuracy in per cent at ε = 50 (Section 4.2) and without privacy (Appendix B).
    ACCURACIES: ClassVar[Mapping[str, str]] = {"sent140": "63.9", "celeba": "89.9", "shakespeare": "44.8"}
    FREE_ACCURACIES: ClassVar[Mapping[str, str]] = {"sent140": "64.8", "shakespeare": "44.4"}
    # Mean canary health over five runs with its standard deviation: all rounds, and after the first thousand.
    HEALTH, LATE_HEALTH, LATE_ROUNDS = ("0.970", "0.098"), ("0.990", "0.01"), 1000
    # Figures 4a, 4b and 6a: ends of the gap between theoretical and empirical ε of a round.
    GAPS: ClassVar[Mapping[str, tuple[str, str]]] = {
        "sent140": ("4.5", "4.5"),
        "celeba": ("4", "5"),
        "shakespeare": ("4", "5"),
    }
    # Appendix C.3.
    CELEBA = Task("celeba", "CelebA", 100, 8408, 30, 85, 2550, 40, 64)
    SENT140 = Task("sent140", "Sent140", 100, 59214, 15, 593, 8895, 100, 90)
    SHAKESPEARE = Task("shakespeare", "Shakespeare", 60, 1016, 30, 17, 510, 8, 64)
    TASKS = (CELEBA, SENT140, SHAKESPEARE)


def noise_for(epsilon: float, curve: Callable[[float], float], least: float, most: float) -> float:
    """Return the noise multiplier between two bounds whose ε on a falling curve is the one given."""
    return float(brentq(lambda sigma: curve(sigma) - epsilon, least, most, xtol=1e-9))
