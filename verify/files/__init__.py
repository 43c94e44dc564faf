"""Users' files in, ours out; errors here know nothing of a command line."""
