"""The doors of rooms: a room's `__init__` names what others may import, and loads each name when it is first asked for.

    if TYPE_CHECKING:
        from research.graph.update import update_graph as update_graph
    else:
        __getattr__, __all__ = exports(__name__, {"update": "update_graph"})

So entering a room costs nothing, and the types are known all the same. tests/test_doors.py compares the two lists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def exports(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """Return a package's `__getattr__` and `__all__`. `names`: the public names of each module, separated by blanks; a
    module may be named whole, without a dot, for the package itself."""
    homes = {name: module for module, listed in names.items() for name in listed.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        if home.startswith("research."):  # another room's, by its door
            value = getattr(import_module(home), name)
        else:
            module = import_module(f"{package}.{home}".rstrip("."))
            known = vars(module)
            value = known[name] if name in known else import_module(f"{module.__name__}.{name}")
        setattr(sys.modules[package], name, value)  # the next time nobody asks for it
        return value

    return load, sorted(homes)
