"""The graph: what the things in an index say of each other, read from what is there, without a model."""
