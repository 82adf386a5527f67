"""What of a command's JSON is printed: `--fields a,b.c` chooses, `--no-text` leaves the text of pages out.

A page's text stands in a document once. Of `ctx ask` that is `formatted_text`, the context as a model gets it; the same
text for each source, `sources.markdown_content`, is there for those who name it. `--no-text` leaves out whatever was
written by whoever wrote the pages, also in passages, quotes and snippets; where it stands is still told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from research.errors import UsageError

_TWICE = {"ask": ("sources.markdown_content",)}
_TEXT = {
    "ask": (
        "formatted_text",
        "sources.markdown_content",
        "sources.passages.text",
        "quotes.text",
        "quotes.header",
        "answer.text",
        "answer.sentences.text",
    ),
    "search": ("results.snippet",),
}

_ALWAYS = "schema"

Tree = Mapping[str, Any]  # a name and the tree below it; an empty one is everything


@dataclass(frozen=True, slots=True)
class Shape:
    """Which fields of a document are printed: `kept` alone, if there are any, without those `left_out`."""

    kept: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def of(self, document: Mapping[str, Any]) -> dict[str, Any]:
        shaped: dict[str, Any] = _without(document, _tree(self.left_out))
        if not self.kept:
            return shaped
        kept: dict[str, Any] = _only(shaped, {_ALWAYS: {}, **_tree(self.kept)})
        return kept


def shape_for(command: str, fields: str | None, *, no_text: bool, as_json: bool) -> Shape:
    """What the options of a command ask for. Raises UsageError for names that its document has not."""
    given = tuple(dict.fromkeys(name.strip() for name in (fields or "").split(",") if name.strip()))
    if (fields is not None or no_text) and not as_json:
        raise UsageError("--fields and --no-text choose what stands in the JSON", hint="add --json")
    if fields is not None and not given:
        raise UsageError("--fields needs names", hint="such as --fields sources.filename,sources.page")
    for name in given:
        _check(command, name)
    text = _TEXT.get(command, ())
    if no_text:
        named = next((name for name in given if name in text), None)
        if named is not None:
            raise UsageError(f"--no-text leaves out {named}, and --fields names it", hint="give one of the two")
        return Shape(given, text)
    return Shape(given, tuple(name for name in _TWICE.get(command, ()) if name not in given))


def _check(command: str, name: str) -> None:
    from cli.schemas import fields_below

    above = ""
    for part in name.split("."):
        known = fields_below(command, above)
        if known is not None and part not in known:
            shown = ", ".join(f"{above}.{each}" if above else each for each in known)
            raise UsageError(
                f"--fields: there is no field {name!r}", hint=f"known: {shown}" if known else f"{above} has no parts"
            )
        above = f"{above}.{part}" if above else part


def _tree(names: Iterable[str]) -> dict[str, Any]:
    """`a.b, a.c, d` as {a: {b: {}, c: {}}, d: {}}. Who names `a` as well gets all of it."""
    tree: dict[str, Any] = {}
    whole = set(names)
    for name in whole:
        parts = name.split(".")
        if any(".".join(parts[:length]) in whole for length in range(1, len(parts))):
            continue
        branch = tree
        for part in parts:
            branch = branch.setdefault(part, {})
    return tree


def _only(value: Any, tree: Tree) -> Any:
    if not tree:
        return value
    if isinstance(value, list | tuple):
        return [_only(each, tree) for each in value]
    if isinstance(value, dict):
        return {name: _only(each, tree[name]) for name, each in value.items() if name in tree}
    return value  # null, where an object may stand


def _without(value: Any, tree: Tree) -> Any:
    if isinstance(value, list | tuple):
        return [_without(each, tree) for each in value]
    if not isinstance(value, Mapping):
        return value
    kept = {name: each for name, each in value.items() if tree.get(name) != {}}
    return {name: _without(each, tree[name]) if name in tree else each for name, each in kept.items()}
