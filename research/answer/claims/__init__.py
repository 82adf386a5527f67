"""What a sentence claims, and whether the text that it cites says so: words, numbers, names and negations, no model."""
