"""Language models that write answers: the protocol, one file a kind of model, and what keeps their replies safe."""
