"""The commands of an auditor."""
