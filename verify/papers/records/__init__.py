"""Records: the contents of the files that runs, trainings and benchmarks leave."""
