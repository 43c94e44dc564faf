"""Users' files in, the package's out; errors here know nothing of a command line."""
