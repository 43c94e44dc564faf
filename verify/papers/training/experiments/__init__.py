"""Experiments that come with the package, one a TOML file."""
