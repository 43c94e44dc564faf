"""What the first version prints in its tables."""

from collections.abc import Sequence

from canaryproof.verify.claims.final_printed import Row

_COLUMNS = ("lower_all", "estimate_all", "lower_final", "estimate_final")


def columns(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Return the four columns of results, as numbers."""
    return {name: [float(getattr(row, name)) for row in rows] for name in _COLUMNS}


# Noise multiplier, ε, mean and standard deviation of the estimate.
TABLE_1 = (("4.22", "1.0", "0.972", "0.148"), ("1.54", "3.0", "3.04", "0.137"), ("0.541", "10.0", "9.98", "0.190"))
TABLE_2 = (  # noise, ε, accuracy in % without and with 1,000 canaries
    ("0", "inf", "25.3", "25.3"),
    ("0.0644", "100k", "24.0", "23.9"),
    ("0.1023", "1000", "23.1", "23.1"),
    ("0.1836", "100", "21.5", "21.5"),
    ("0.2344", "50", "20.6", "20.5"),
)
TABLE_3 = (
    Row("0", "inf", "6.24", "51300", "3.91", "5.49"),
    Row("0.0644", "100k", "6.17", "425", "1.26", "1.74"),
    Row("0.102", "1000", "4.67", "243", "1.01", "1.22"),
    Row("0.1836", "100", "2.44", "92.0", "0.802", "0.865"),
    Row("0.2344", "50", "0.177", "78.9", "0.478", "0.675"),
)
TABLE_4 = {  # Anderson's statistic by noise, for these repetitions
    "0": ("0.464", "0.590", "0.396", "0.407", "0.196"),
    "0.102": ("0.976", "0.422", "0.340", "0.432", "0.116"),
    "0.234": ("0.326", "0.157", "0.347", "0.951", "0.401"),
}
REPETITIONS = (1, 2, 3, 5, 10)
WEAK_CRITICAL_VALUE = 0.574
