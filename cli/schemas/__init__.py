"""The JSON schemas (draft 2020-12) of what `--json` prints, a file a document; common.json has what they share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
_COMMON = "common"
_OUTSIDE, _INSIDE = f"{_COMMON}.json#/$defs/", "#/$defs/"


def names() -> list[str]:
    """The documents: one for each command that prints any, and `error`."""
    return sorted(path.stem for path in _FOLDER.glob("*.json") if path.stem != _COMMON)


def load(name: str) -> dict[str, Any]:
    """A document's schema, whole: whatever it shares with others is in its `$defs`."""
    schema = _read(name)
    shared = _read(_COMMON)["$defs"]
    defs: dict[str, Any] = {}
    while missing := [each for each in _named(schema) + _named(defs) if each not in defs]:
        defs.update((each, shared[each]) for each in missing)
    if defs:
        schema["$defs"] = {each: defs[each] for each in sorted(defs)}
    moved: dict[str, Any] = json.loads(json.dumps(schema).replace(_OUTSIDE, _INSIDE))
    return moved


def fields_below(name: str, path: str) -> list[str] | None:
    """The fields of a document, or of what `path` names in it; None where names are free, as in `timings`."""
    schema = load(name)
    here = schema
    for part in path.split(".") if path else ():
        below = _properties(schema, here)
        if below is None or part not in below:
            return None
        here = below[part]
    found = _properties(schema, here)
    return None if found is None else list(found)


def _properties(schema: dict[str, Any], here: Any) -> dict[str, Any] | None:
    """What an object may have, through references, lists and `null`; nothing for a value, None for a free object."""
    if "$ref" in here:
        return _properties(schema, schema["$defs"][here["$ref"].removeprefix(_INSIDE)])
    if "anyOf" in here:
        several = [_properties(schema, each) for each in reversed(here["anyOf"])]
        return None if None in several else {name: told for each in several for name, told in (each or {}).items()}
    if "items" in here:
        return _properties(schema, here["items"])
    if here.get("type") == "object" and "properties" not in here:
        return None
    found: dict[str, Any] = here.get("properties", {})
    return found


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    return found


def _named(value: Any) -> list[str]:
    """The shared parts that a schema refers to."""
    if isinstance(value, dict):
        own = [value["$ref"].removeprefix(_OUTSIDE)] if "$ref" in value else []
        return own + [name for each in value.values() for name in _named(each)]
    return [name for each in value for name in _named(each)] if isinstance(value, list) else []
