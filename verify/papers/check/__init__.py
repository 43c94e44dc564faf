"""The vocabulary of checks: check, outcome, verdict, level and power."""
