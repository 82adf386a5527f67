"""Questions with known pages against an index: how often, how high and how quickly the right page comes."""
