"""What ctx tells about its own work: times, counts and events to a `Recorder`, words to the logger `ctx`."""
