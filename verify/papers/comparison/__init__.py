"""Methods side by side on one training: this room measures and never judges."""
