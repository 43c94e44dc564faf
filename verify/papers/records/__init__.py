"""What runs, trainings and benchmarks leave in files, as records."""
