"""Federated data sets from the files that hold them."""
