"""Answers: quotes from the sources, and the check of a written answer's citations."""
