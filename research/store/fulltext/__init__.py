"""Words of pages, items and memories."""

from lazy_loader import attach

__getattr__, __dir__, __all__ = attach(__name__, ["search"])
