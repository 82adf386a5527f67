"""What happens to documents after they were read: one file a stage, all of the same shape (`base.Stage`)."""
