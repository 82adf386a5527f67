"""The published tables of byte-pair tokens, laid out so that a look-up reads a few bytes of a file."""
