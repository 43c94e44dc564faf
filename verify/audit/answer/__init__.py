"""The audit of one run: scores in, estimates of ε, lower bounds and warnings out."""
