"""Context packages: what a task needs to know, governed, within a budget, cached and traceable (seed 003)."""
