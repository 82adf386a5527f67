"""JSON schemas of what we give, made by pydantic from the records themselves, where somebody asks for one.

No command that answers loads this. An object that is no record of its own is described by `shape`, from the record that
it is made of and what stands beside that record's fields.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NotRequired, get_type_hints

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict  # pydantic takes no other before Python 3.12

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def shape(
    record: type | None = None,
    *,
    called: str = "",
    only: str = "",
    without: str = "",
    open: bool = False,
    **beside: Any,
) -> Any:
    """The object that a record is in JSON: its fields, `only` these or `without` those, with others `beside` or in
    place of them. Nothing else may stand in it, unless it is `open`."""
    own = [] if record is None else [each.name for each in fields(record) if each.repr]
    kept = [each for each in own if each not in {*without.split(), *beside} and (not only or each in only.split())]
    make: Any = TypedDict
    made = make(called or (record.__name__ if record else "Object"), _hints(record, kept) | beside)
    made.__pydantic_config__ = ConfigDict(extra="allow" if open else "forbid")
    return made


def several(kind: Any) -> Any:
    """A list of these."""
    made: Any = list[kind]
    return made


def maybe(kind: Any) -> Any:
    """This, or the field is missing."""
    made: Any = NotRequired[kind]
    return made


def json_schema(document: Any, title: str, description: str) -> dict[str, Any]:
    """The schema of a whole document, whose field `schema` has this title: its kind and version."""
    found = TypeAdapter(document).json_schema(mode="serialization")
    _close(found)
    urn = "urn:" + title.replace(".", ":").replace("/", ":")
    told = {"$schema": DIALECT, "$id": urn, **found, "title": title, "description": description}
    told["properties"] = {"schema": {"const": title}, **found["properties"]}
    told["required"] = ["schema", *found.get("required", ())]
    return told


def _hints(record: type | None, names: list[str]) -> dict[str, Any]:
    """The types of these fields; those of others may be known to type checkers alone."""
    if record is None:
        return {}
    told = {each.name: each.type for each in fields(record) if each.name in names}
    return get_type_hints(type("Told", (), {"__annotations__": told, "__module__": record.__module__}))


def _close(schema: Any) -> None:
    """Let a record have all of its fields and nothing else, which dataclasses do not say themselves; leave out titles,
    which are the names of fields once more."""
    for each in schema if isinstance(schema, list) else schema.values() if isinstance(schema, dict) else ():
        _close(each)
    if isinstance(schema, dict) and "type" in schema and isinstance(schema.get("properties"), dict):
        if "additionalProperties" not in schema:
            schema |= {"required": list(schema["properties"]), "additionalProperties": False}
        for each in schema["properties"].values():
            each.pop("title", None)
            each.pop("default", None)
