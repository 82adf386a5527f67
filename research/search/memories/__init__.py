"""Memories of one tenant, searched in memory: their words, vectors, speakers and times, and how they are ranked."""
