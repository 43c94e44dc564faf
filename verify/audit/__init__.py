"""The auditor's library: the privacy of somebody's training, from files and scores to a decision."""
