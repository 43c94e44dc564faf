# privacy-estimates 0.1.0.post1: the method joint-dirichlet raises TypeError for every input.
from privacy_estimates import AttackResults, compute_eps_lo

count = AttackResults(FN=40, FP=20, TN=80, TP=60)
print(compute_eps_lo(count=count, delta=1e-5, alpha=0.05, method="joint-dirichlet"))
# Cause: joint_density.py, line 125, adds an AttackResults to an array.
