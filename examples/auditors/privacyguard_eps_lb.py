# privacyguard-platform 0.0.2: AnalysisNode's eps_lb is above the true ε, 3, where no unobserved score is as high.
import numpy as np
from pandas import DataFrame
from privacy_guard.analysis.base_analysis_input import BaseAnalysisInput
from privacy_guard.analysis.mia.analysis_node import AnalysisNode

rng = np.random.default_rng(0)
for k in (100, 1000):
    scores = (DataFrame({"score": shift + rng.standard_normal(k)}) for shift in (0.7191, 0.0))  # ε = 3 at δ = 1e-5
    found = AnalysisNode(BaseAnalysisInput(*scores), delta=1e-5, n_users_for_eval=2 * k).run_analysis()
    print(f"k = {k}: eps_lb = {found.eps_lb:.3f}, eps = {found.eps:.3f}; ln k = {np.log(k):.3f}")
# Cause: mia_results.py, lines 256 and 262: ln TPR − ln FPR is infinite where FPR = 0, and becomes ln k. A resample of
# scores without false positives has none either.
