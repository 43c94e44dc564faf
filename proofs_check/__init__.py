"""The mathematics: displayed equations of the proofs as executable checks."""
