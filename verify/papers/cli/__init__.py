"""The commands of the study."""
