"""Other people's auditing tools and accountants, each measured in its own environment; ours run the same way."""
