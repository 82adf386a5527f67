"""What is imported late, and how: the names of a room's door, and libraries that would report to their makers.

A room's `__init__` names what others may import, and loads each name when it is first asked for.

    if TYPE_CHECKING:
        from research.graph.update import update_graph as update_graph
    else:
        __getattr__, __dir__, __all__ = exports(__name__, {"update": "update_graph"})

So entering a room costs nothing, and the types are known all the same. tests/test_doors.py compares the two lists.

Every process of ours calls `switch_off` before it imports a dependency; its children inherit it. `import_onnxruntime`
is the only way to the library that would report most.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from lazy_loader import attach


def exports(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a package's `__getattr__`, `__dir__` and `__all__`. `names`: the public names of each module, separated by
    blanks; of the package itself (""), the modules that others may import whole."""
    attributes = {module: given.split() for module, given in names.items()}
    load, listed, public = attach(package, attributes.pop("", []), attributes)
    return load, listed, public


# Each is read once, when the library starts: ONNX Runtime sends events to its maker and keeps a device id in the
# user's cache; Chroma and the model hub's client count their calls; FastAPI would send the address of every request to
# where our own spans go, and a question can stand in it.
SWITCHES = {
    "ORT_DISABLE_TELEMETRY": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",  # its client's, and those of transformers
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
