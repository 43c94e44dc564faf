"""What the anonymous submission prints in its tables and of its experiments' settings."""

from canaryproof.verify.claims.final_printed import Row

SUBMISSION = "anonymous submission of Andrew et al."
# Noise multiplier, ε, mean and standard deviation of the estimate.
TABLE_1 = (("4.22", "1.0", "0.972", "0.148"), ("1.54", "3.0", "3.04", "0.137"), ("0.541", "10.0", "9.98", "0.190"))
TABLE_2 = (
    Row("0", "inf", "6.240", "45800", "2.88", "4.60"),
    Row("0.0496", "300", "6.238", "382", "1.11", "1.97"),
    Row("0.0986", "100", "5.05", "89.4", "0.688", "1.18"),
    Row("0.2317", "30", "0.407", "2.693", "0.311", "0.569"),
)
TABLE_3 = (
    Row("0.0", "inf", "6.25", "48300", "3.86", "5.72"),
    Row("0.16", "33.8", "2.87", "17.9", "1.01", "1.20"),
    Row("0.18", "28.1", "2.32", "12.0", "0.788", "1.15"),
    Row("0.195", "24.8", "2.02", "8.88", "0.723", "1.08"),
    Row("0.25", "16.9", "0.896", "3.86", "0.550", "0.818"),
    Row("0.315", "12.0", "0.315", "1.50", "0.216", "0.737"),
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
# Section 5, without the number of clients, which our copy has as 34k; and the first version's.
SETTING = {
    "parameters": ("4.1M", "4.1M"),
    "rounds": ("2048", "2048"),
    "clients a round": ("167", "167"),
    "client learning rate": ("1.0", "1.0"),
    "server learning rate": ("0.56", "0.56"),
    "canaries": ("1k", "1k"),
    "exponent of δ": ("-1.1", "-1.1"),
}
# Appendix D; and the final version's Section 5.2.1.
EMNIST = {
    "characters": ("814k", "814k"),
    "users": ("3383", "3383"),
    "parameters": ("1.2M", "1.2M"),
    "epochs": ("5", "15"),
    "clients a round": ("34", "101"),
    "client learning rate": ("0.031", "0.031"),
    "server learning rate": ("1.0", "1.0"),
    "momentum": ("0.9", "0.9"),
    "batch": ("16", "16"),
}
# Appendix H; and the final version's Section 5.4.
CANIFE = {
    "design pool": ("512", "512"),
    "optimisation steps": ("2500", "2500"),
    "rounds between audits": ("100", "100"),
    "scores an audit": ("100", "100"),
    "clip norm": ("1.0", "1.0"),
    "noise multiplier": ("0.2", "0.2"),
    "batch": ("128", "128"),
    "analytical ε": ("34.5", "34.5"),
    "CANIFE's ε": ("0.879 ± 0.124", "0.879 ± 0.124"),
    "the canaries' ε": ("6.76 ± 1.06", "6.76 ± 1.06"),
}
