# jax-privacy 2.0.0: epsilon_from_gdp is above the true ε, 0, where canaries leave no trace.
import numpy as np
from jax_privacy.auditing import CanaryScoreAuditor

rng = np.random.default_rng(0)
for k in (100, 1000):
    scores = rng.standard_normal((100, 2, k))
    found = [CanaryScoreAuditor(seen, unseen).epsilon_from_gdp(0.05, 1e-5) for seen, unseen in scores]
    print(f"k = {k}: above 0 in {np.sum(np.array(found) > 0)} of 100 audits, median {np.median(found):.2f}")
# Cause: auditing.py, line 927: np.abs of Φ⁻¹(1 − FPR) − Φ⁻¹(FNR) at upper limits of both. Where it is
# negative, it shows nothing. Pull request 270 of its repository corrects this.
