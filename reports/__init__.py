"""Pages, tables and pictures of a finished run."""
