"""Lower bounds on ε from the scores of canaries: those of the literature as printed, and valid ones."""
