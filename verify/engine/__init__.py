"""Runs of checks: their plan, where they compute, what they keep, and which verdicts are expected."""
