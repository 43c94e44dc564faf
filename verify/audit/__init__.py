"""Scores in, an audit out, and how it reads."""
