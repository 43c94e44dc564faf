"""Suite ``canife``: CANIFE's studies at small size, our promises on its measures, and CANIFE beside random canaries.

Checks train and design with JAX: what loads it is imported when one runs, as a ledger is listed without it. The
statements on the paper's own data sets are in ``verify.claims.canife_experiments``.
"""
