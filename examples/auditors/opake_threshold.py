# opake-auditing 0.16.1: eps_delta().epsilon_at is above the true ε, 0, more often than its significance of 5%.
import numpy as np
import opake.auditing as auditing
from opake.random import key

above = {None: 0, 0.0: 0}
for seed in range(400):
    coins = auditing.coin_flip(range(200), num_canaries=200, key=key(seed))
    scores = auditing.canary_scores(np.random.default_rng(seed).standard_normal(200), canary_indices=np.arange(200))
    method = auditing.one_run(scores, coin_flip=coins).eps_delta()
    above = {at: n + (method.epsilon_at(delta=1e-5, threshold=at) > 0.01) for at, n in above.items()}
print(f"above 0.01 in {above[None]} of 400 audits; with a threshold given in advance, in {above[0.0]}")
# Cause: api/auditing/one_run/_estimate.py, line 167, takes the threshold with most right guesses from the same scores.
