"""The one door to ONNX Runtime."""

from __future__ import annotations

from typing import Any

from research.telemetry import switch_off


def import_onnxruntime() -> Any:
    """The module, its telemetry off: by the variable it reads when it starts, and by its own call for versions that
    know no such variable or were imported by somebody else before."""
    switch_off()
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    return onnxruntime
