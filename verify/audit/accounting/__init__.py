"""The analytical ε: what noise, sampling and rounds add up to."""
