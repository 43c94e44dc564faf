"""The parts of pages, an audit's and a run's: digits of numbers, Markdown, and pictures."""
