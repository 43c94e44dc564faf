"""A training, watched: what passes by is taken, and answered with findings and one decision."""
