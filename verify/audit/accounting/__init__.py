"""The analytical ε: what noise, sampling and rounds add up to."""

import logging

# dp-accounting warns of each order whose series does not converge and goes on without it: ε is an upper bound still.
logging.getLogger("absl").setLevel(logging.ERROR)
