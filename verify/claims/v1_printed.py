"""What the first version prints in its Tables 2 to 4."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimates:
    """A printed row of lower bounds and estimates, as text.

    Attributes
    ----------
    noise, analytical
        Noise multiplier, and the analytical ε printed with it.
    lower_all, all_
        95% lower bound and estimate where all model deltas are seen.
    lower_final, final
        The same where the final model alone is seen.
    """

    noise: str
    analytical: str
    lower_all: str
    all_: str
    lower_final: str
    final: str

    def statement(self) -> str:
        """Return what the row says."""
        return (
            f"at noise multiplier {self.noise} the lower bound and the estimate are {self.lower_all} and {self.all_} "
            f"from all iterates, {self.lower_final} and {self.final} from the final model"
        )


def columns(rows: tuple[Estimates, ...]) -> dict[str, list[float]]:
    """Return the four columns of results, as numbers."""
    return {
        "lower-all": [float(row.lower_all) for row in rows],
        "all": [float(row.all_) for row in rows],
        "lower-final": [float(row.lower_final) for row in rows],
        "final": [float(row.final) for row in rows],
    }


TABLE_2 = (  # noise, ε, accuracy in % without and with 1,000 canaries
    ("0", "inf", "25.3", "25.3"),
    ("0.0644", "100k", "24.0", "23.9"),
    ("0.1023", "1000", "23.1", "23.1"),
    ("0.1836", "100", "21.5", "21.5"),
    ("0.2344", "50", "20.6", "20.5"),
)
TABLE_3 = (
    Estimates("0", "inf", "6.24", "51300", "3.91", "5.49"),
    Estimates("0.0644", "100k", "6.17", "425", "1.26", "1.74"),
    Estimates("0.102", "1000", "4.67", "243", "1.01", "1.22"),
    Estimates("0.1836", "100", "2.44", "92.0", "0.802", "0.865"),
    Estimates("0.2344", "50", "0.177", "78.9", "0.478", "0.675"),
)
TABLE_4 = {  # Anderson's statistic by noise, for these repetitions
    "0": ("0.464", "0.590", "0.396", "0.407", "0.196"),
    "0.102": ("0.976", "0.422", "0.340", "0.432", "0.116"),
    "0.234": ("0.326", "0.157", "0.347", "0.951", "0.401"),
}
REPETITIONS = (1, 2, 3, 5, 10)
WEAK_CRITICAL_VALUE = 0.574
