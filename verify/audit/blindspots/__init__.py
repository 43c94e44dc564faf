"""Mechanisms whose ε is known, and what an audit by random canaries sees of them."""
