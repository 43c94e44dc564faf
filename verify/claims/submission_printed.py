"""What the anonymous submission prints in its Tables 2 to 4 and 6."""

from canaryproof.verify.claims.v1_printed import Estimates

SUBMISSION = "anonymous submission of Andrew et al."
# Its Table 1: noise multiplier, ε, mean and standard deviation of the estimate.
TABLE_1 = (("4.22", 1.0, 0.972, 0.148), ("1.54", 3.0, 3.04, 0.137), ("0.541", 10.0, 9.98, 0.190))
TABLE_2 = (
    Estimates("0", "inf", "6.240", "45800", "2.88", "4.60"),
    Estimates("0.0496", "300", "6.238", "382", "1.11", "1.97"),
    Estimates("0.0986", "100", "5.05", "89.4", "0.688", "1.18"),
    Estimates("0.2317", "30", "0.407", "2.693", "0.311", "0.569"),
)
TABLE_3 = (
    Estimates("0.0", "inf", "6.25", "48300", "3.86", "5.72"),
    Estimates("0.16", "33.8", "2.87", "17.9", "1.01", "1.20"),
    Estimates("0.18", "28.1", "2.32", "12.0", "0.788", "1.15"),
    Estimates("0.195", "24.8", "2.02", "8.88", "0.723", "1.08"),
    Estimates("0.25", "16.9", "0.896", "3.86", "0.550", "0.818"),
    Estimates("0.315", "12.0", "0.315", "1.50", "0.216", "0.737"),
)
TABLE_4 = {  # Anderson's statistic by noise, for 1, 2, 3, 5 and 10 repetitions
    "0": ("0.464", "0.590", "0.396", "0.407", "0.196"),
    "0.1023": ("0.976", "0.422", "0.340", "0.432", "0.116"),
    "0.2344": ("0.326", "0.157", "0.347", "0.951", "0.401"),
}
# Noise, runs, canaries a run, and the quantiles 0.1, 0.3, 0.5, 0.7 and 0.9 over fifty experiments.
TABLE_6 = (
    ("0.0496", 1, 1000, ("1.59", "1.75", "1.97", "2.15", "2.46")),
    ("0.0496", 10, 100, ("1.65", "1.80", "1.92", "2.16", "2.32")),
    ("0.0986", 1, 1000, ("0.81", "1.06", "1.18", "1.33", "1.54")),
    ("0.0986", 10, 100, ("0.87", "1.03", "1.16", "1.36", "1.78")),
)
QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)
EXPERIMENTS = 50
