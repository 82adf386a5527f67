"""Labels of things as `ctx classify` and `ctx label` print them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from cli.options import Common
    from research.governance.access import Resource
    from research.governance.labels import Label, Labels


def list_labels(schema: str, labels: Labels, given: Common, names: Collection[str]) -> None:
    """All that there are by these names."""
    show_labels(schema, labels, given, [each for each in labels.listed() if each.name in names])


def show_labels(schema: str, labels: Labels, given: Common, found: Sequence[Label]) -> None:
    from cli.output import write_document, write_line

    files = labels.names()
    if given.as_json:
        write_document(
            schema, {"labels": [{**asdict(each), "filename": shown_name(each.target, files) or None} for each in found]}
        )
        return
    for each in found:
        what = each.value if each.name == "classification" else f"{each.name}={each.value}"
        write_line(what, each.target, shown_name(each.target, files), *([each.tenant] if each.tenant else []))


def shown_name(target: str, files: Mapping[str, str]) -> str:
    """The file of a document or page; empty for what is none."""
    kind, _, rest = target.partition(":")
    return files.get(rest.partition("#")[0], "") if kind in ("document", "page") else ""


def resource_fields(thing: Resource) -> dict[str, Any]:
    """What a policy is told of a thing."""
    said = {name: getattr(thing, name) or None for name in ("status", "module", "project")}
    tags = sorted(thing.tags)
    return {
        "kind": thing.kind,
        "source_path": thing.path or None,
        "tags": tags,
        "classification": thing.classification,
    } | said
