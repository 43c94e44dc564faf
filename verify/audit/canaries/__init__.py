"""Canaries in a training: who takes part when, what they send, and their scores."""
