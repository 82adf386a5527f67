"""What is imported late, and how: the names of a room's door, and libraries that would report to their makers.

A room's `__init__` names what others may import, and loads each name when it is first asked for.

    if TYPE_CHECKING:
        from research.graph.update import update_graph as update_graph
    else:
        __getattr__, __all__ = exports(__name__, {"update": "update_graph"})

So entering a room costs nothing, and the types are known all the same. tests/test_doors.py compares the two lists.

Every process of ours calls `switch_off` before it imports a dependency; its children inherit it. `import_onnxruntime`
is the only way to the library that would report most.
"""

from __future__ import annotations

import os
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


# Each is read once, when the library starts: ONNX Runtime sends events to its maker and keeps a device id in the
# user's cache; Chroma and the model hub's client count their calls; FastAPI would send the address of every request to
# where our own spans go, and a question can stand in it.
SWITCHES = {
    "ORT_DISABLE_TELEMETRY": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "FASTAPI_OTEL_AUTO_CONFIGURE": "false",
}


def switch_off() -> None:
    """Whatever the user's environment says, and whatever the versions: a later one may add what this one lacks."""
    os.environ.update(SWITCHES)


def import_onnxruntime() -> Any:
    """The module, its telemetry off: by the variable it reads when it starts, and by its own call for versions that
    know no such variable or were imported by somebody else before."""
    switch_off()
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    return onnxruntime
