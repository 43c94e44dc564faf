"""Suite ``canife``: CANIFE's studies at small size, our promises on its measures, and CANIFE against random canaries.

Checks train and design with JAX. Modules that load it are imported when a check runs, as a ledger is listed without it.
The statements on the paper's own data sets are in ``verify.papers.claims.canife_experiments``.
"""
