"""Proofs that Rocq's kernel checks: ``make prove-rocq``."""
