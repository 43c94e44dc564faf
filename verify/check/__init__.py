"""What a check is, how it is judged, and what a run of checks finds."""
