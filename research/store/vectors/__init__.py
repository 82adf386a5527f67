"""Chroma's collections beside the catalog."""

from lazy_loader import attach

__getattr__, __dir__, __all__ = attach(__name__, ["generations"])
