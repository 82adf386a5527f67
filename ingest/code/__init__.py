"""Source files become pieces of code: functions, classes and methods, each an item of the index."""
