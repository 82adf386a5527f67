"""What ctx tells of itself: times, counts, logs and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.observe.exporters import PrometheusRecorder
    from research.observe.recorder import (
        NAME,
        NULL_RECORDER,
        TRACE,
        NullRecorder,
        Recorder,
        Recorders,
        RequestRecorder,
        close_recorder,
        current_trace,
        frames_of,
        full_text,
        in_full,
        log_failure,
        logger_of,
        recorder_for,
        taken_up,
        telling,
        traced,
    )
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "exporters": "PrometheusRecorder",
            "recorder": (
                "NAME NULL_RECORDER NullRecorder Recorder Recorders RequestRecorder TRACE close_recorder current_trace "
                "frames_of full_text in_full log_failure logger_of recorder_for taken_up telling traced"
            ),
        },
    )
