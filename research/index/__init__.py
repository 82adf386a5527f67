"""Index: the one object that the command line, the library and every service use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.index.index import Index
    from research.index.view import View
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "view": "View",
            "index": "Index",
        },
    )
