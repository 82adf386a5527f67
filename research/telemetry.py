"""Nothing leaves the machine: what our dependencies would report is switched off before they are imported.

Every process of ours calls `switch_off` first; its children inherit it.
"""

from __future__ import annotations

import os

# Each is read once, when the library starts: ONNX Runtime sends events to its maker and keeps a device id in the
# user's cache; Chroma and the model hub's client count their calls.
SWITCHES = {
    "ORT_DISABLE_TELEMETRY": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}


def switch_off() -> None:
    """Whatever the user's environment says, and whatever the versions: a later one may add what this one lacks."""
    os.environ.update(SWITCHES)
