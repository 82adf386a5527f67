"""Answers: quotes from the sources, and how likely it is that one of them answers."""
