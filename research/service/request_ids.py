"""The names of a request: its id, and its place in a trace (W3C Trace Context)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # what may stand in a log, a header and a document as it is
_SAMPLED = "01"


def request_id(given: str | None) -> str:
    """The id that the caller gave, if it is a short plain word; else a new one."""
    return given if given is not None and _ID.fullmatch(given) else os.urandom(8).hex()


def own_traceparent(trace: Mapping[str, str]) -> str:
    """The caller's trace (`research.observe.taken_up`) with a span id of ours; a new one where there is none."""
    span = os.urandom(8).hex()
    given = trace.get("traceparent")
    if given is None:
        return f"00-{os.urandom(16).hex()}-{span}-{_SAMPLED}"
    flags = _SAMPLED if int(given[53:55], 16) & 1 else "00"  # what the other flags mean is not known yet
    return f"00-{given[3:35]}-{span}-{flags}"
