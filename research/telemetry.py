"""Nothing leaves the machine: what our dependencies would report is switched off before they are imported.

Every process of ours calls `switch_off` first; its children inherit it. `import_onnxruntime` is the one door to the
library that would report most.
"""

from __future__ import annotations

import os
from typing import Any

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
