"""Commits of git repositories into an index. `run.ingest_commits` does it."""
