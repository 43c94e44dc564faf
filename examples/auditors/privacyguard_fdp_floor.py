# privacyguard-platform 0.0.2: with its defaults FDPAnalysisNode cannot report less than 0.397.
from privacy_guard.analysis.mia.fdp_analysis_node import FDPAnalysisNode

for right in (0, 100):
    node = FDPAnalysisNode(m=200, c=right, c_cap=200)
    print(f"{right} of 200 guesses right: {node.run_analysis().eps:.3f}")
# Cause: fdp_analysis_node.py, lines 57 and 214: candidate_noises ends at 9.991. Where the data
# contradict none of them, the last one is reported all the same.
