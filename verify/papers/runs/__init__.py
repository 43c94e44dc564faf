"""The plan of a run, its file and folder, and the verdicts that it should find."""
