# opake-auditing 0.16.1: eps_delta().epsilon_at is above the true ε, 0, more often than its significance of 5%.
import numpy as np
import opake.auditing as auditing
from opake.random import key

above = 0
for seed in range(400):
    coins = auditing.coin_flip(range(200), num_canaries=200, key=key(seed))
    scores = np.random.default_rng(seed).standard_normal(200)
    estimate = auditing.one_run(auditing.canary_scores(scores, canary_indices=np.arange(200)), coin_flip=coins)
    above += estimate.eps_delta().epsilon_at(delta=1e-5) > 0.01
print(f"above 0.01 in {above} of 400 audits")
# Cause: OneRunEstimate._best_r_u takes the threshold with most right guesses from the same scores.
