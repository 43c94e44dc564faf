"""Mechanisms of known ε, and what an audit by random canaries notices about them."""
