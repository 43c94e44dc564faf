"""Claims of CANIFE (Maddock et al., arXiv 2210.02912): attack, composition, experiments, and their rules."""

from canaryproof.verify.papers.claims.canife import attack, composition, experiments

CHECKS = (*attack.CHECKS, *composition.CHECKS, *experiments.CHECKS)
