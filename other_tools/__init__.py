"""Other people's auditing tools and accountants, each measured in its own environment, and this package's methods."""
