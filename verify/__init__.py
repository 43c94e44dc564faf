"""The algorithms of the papers, the suites that judge them, and the command line."""
