"""Context packages: what a task needs to know, governed, within a budget, cached and traceable (seed 003).

ContextBuildRequest → vectors, metadata and graph, side by side → blended score → govern → fit → ContextPackage
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.packages.builder import Fitting
    from research.packages.cache import shown_address
    from research.packages.packages import Packages, drop_left, packages_of
    from research.packages.request import MOST_PINNED, ContextBuildRequest, ContextPackage, published
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "builder": "Fitting",
            "cache": "shown_address",
            "packages": "Packages drop_left packages_of",
            "request": "ContextBuildRequest ContextPackage MOST_PINNED published",
        },
    )
