"""Estimators of ε from the cosines of a single run."""
