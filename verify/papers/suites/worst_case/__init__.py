"""Search for the inputs at which a fast kernel errs most, judged by certified enclosures."""
