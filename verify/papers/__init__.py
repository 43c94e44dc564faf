"""The study of the papers: their claims checked, their methods compared, and the reports of it."""
