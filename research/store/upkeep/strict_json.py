"""JSON that came from outside: read, or refused with ValueError and nothing else."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def strict_json(text: str) -> Any:
    """What a text says. Nesting beyond reason, NaN, Infinity and a key given twice are refused like any other fault.

    The caller bounds the text's length: what is read takes some ten times the room.
    """
    try:
        return json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found
