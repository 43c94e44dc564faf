"""Analytical ε as the documents print them: each accountant that a printed number could have come from."""
