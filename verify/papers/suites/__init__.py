"""Suites: lists of checks with their verdicts."""
