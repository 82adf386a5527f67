"""Text that was written for a model: how it reads once its disguises are off, and which orders it gives."""
