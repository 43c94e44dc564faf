"""Canaries in somebody's training: who takes part, what they send, and their scores."""
