"""Refs become resources: what a policy is told of a page, a memory, a piece of code. Read in bulk, from one reader.

A page inherits from its document, a piece of code from its file, a commit from its repository and the files it changed,
an axis of an experience from the experience, a value and a summary from what they were made of. What there is not, or
not for this tenant, is a resource of the kind `unknown`, which is denied without asking anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from research.governance.access import Principal, Resource
from research.governance.labels import LabelRules, facts_of
from research.governance.policy import UNKNOWN
from research.store import KINDS as ITEM_KINDS
from research.store import (
    GovernedDocument,
    Label,
    governed_documents,
    governed_items,
    governed_memories,
    known_sessions,
    labels_at,
)

if TYPE_CHECKING:
    from research.store import Reader

KINDS = ("page", "document", "section", "file", "memory", "session", *ITEM_KINDS)
_LONGEST = 1 << 14  # characters of a ref; what is longer is none of ours


@dataclass(frozen=True, slots=True)
class Named:
    """What a ref names: `targets` are those that labels are kept under, its own first."""

    kind: str
    targets: tuple[str, ...]
    paths: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    tenant: str = ""


def resources_of(
    reader: Reader, refs: Sequence[str], principal: Principal, *, default: str = "Internal"
) -> list[Resource]:
    """One for each ref, in order. `default` is the classification of what nobody has classified."""
    named = dict(_named(reader, refs, principal))
    by_tenant: dict[str, list[str]] = {}
    for each in named.values():
        by_tenant.setdefault(each.tenant, []).extend(each.targets)
    labels = {tenant: labels_at(reader, tenant, targets) for tenant, targets in by_tenant.items()}
    patterns = LabelRules(reader)
    inherited: dict[tuple[tuple[str, ...], frozenset[str]], list[Label]] = {}  # many pages are of one document
    found = []
    for ref in refs:
        thing = named.get(ref)
        if thing is None:
            found.append(Resource(ref, UNKNOWN, classification="Restricted"))
            continue
        own = [label for target in thing.targets for label in labels[thing.tenant].get(target, ())]
        place = (thing.paths, thing.tags)
        if place not in inherited:
            inherited[place] = list(patterns.of(*place))
        facts = facts_of([*own, *inherited[place]], default)
        found.append(
            Resource(
                ref,
                thing.kind,
                thing.paths[0] if thing.paths else "",
                thing.tags,
                facts.classification,
                facts.status,
                facts.module,
                facts.project,
                thing.tenant,
            )
        )
    return found


def lasting_targets(reader: Reader, refs: Iterable[str], principal: Principal) -> dict[str, str]:
    """Ref → what its own labels are kept under; without those that name nothing."""
    return {ref: each.targets[0] for ref, each in _named(reader, list(refs), principal)}


def _named(reader: Reader, refs: Sequence[str], principal: Principal) -> Iterator[tuple[str, Named]]:
    """Each ref that there is, with what it names."""
    by_kind: dict[str, dict[str, str]] = {}  # kind → ref → what follows the colon
    for ref in dict.fromkeys(refs):
        kind, _, rest = ref.partition(":")
        if rest and kind in KINDS and len(ref) <= _LONGEST and _is_text(ref):
            by_kind.setdefault(kind, {})[ref] = rest
    for kind, wanted in by_kind.items():
        if kind in ("page", "document", "section"):
            yield from _documents(reader, kind, wanted)
        elif kind == "file":  # of source code, as the graph has it: nothing but a path
            yield from ((ref, Named(kind, (ref,), (rest,))) for ref, rest in wanted.items())
        elif kind == "memory":
            memories = governed_memories(reader, principal.tenant, wanted.values())
            for ref, rest in wanted.items():
                if rest in memories:
                    targets = (ref, *(f"memory:{each}" for each in memories[rest].made_from))
                    yield ref, Named(kind, targets, tags=memories[rest].tags, tenant=principal.tenant)
        elif kind == "session":
            there = known_sessions(reader, principal.tenant, wanted.values())
            for ref, rest in wanted.items():
                if rest in there:
                    yield ref, Named(kind, (ref,), tenant=principal.tenant)
        else:
            yield from _items(reader, kind, wanted)


def _documents(reader: Reader, kind: str, wanted: dict[str, str]) -> Iterator[tuple[str, Named]]:
    split = {ref: _page(rest) if kind == "page" else (_document(kind, rest), 1) for ref, rest in wanted.items()}
    there = governed_documents(reader, [key for key, _ in split.values()])
    for ref, (key, page) in split.items():
        document = there.get(key)
        if document is not None and 0 < page <= document.num_pages:
            targets = _document_targets(document, page if kind == "page" else 0)
            yield ref, Named(kind, targets, document.paths, document.tags)


def _page(rest: str) -> tuple[str, int]:
    """The document and the number of the page, 0 where it is none: `٣` and `007` are no numbers of ours."""
    key, _, number = rest.rpartition("#")
    plain = number.isascii() and number.isdigit() and not number.startswith("0") and len(number) < 10
    return key, int(number) if plain else 0


def _document(kind: str, rest: str) -> str:
    """A section is as its document is: its heading may stand on any page of it."""
    return rest.rpartition("#")[0] if kind == "section" else rest


def _document_targets(document: GovernedDocument, page: int) -> tuple[str, ...]:
    whole = tuple(f"document:{each}" for each in document.ids)
    return (*(f"page:{each}#{page}" for each in document.ids), *whole) if page else whole


def _items(reader: Reader, kind: str, wanted: dict[str, str]) -> Iterator[tuple[str, Named]]:
    there = governed_items(reader, kind, wanted.values())
    for ref, rest in wanted.items():
        item = there.get(rest)
        if item is None:
            continue
        targets = tuple(dict.fromkeys((ref, f"{kind}:{item.parent}", *item.made_from)))
        paths: tuple[str, ...] = ()
        if kind in ("code", "commit"):
            folder = item.parent.removesuffix("/.git")
            paths = (folder, *(f"{folder}/{file}" for file in item.files))
        yield ref, Named(kind, targets, paths)


def _is_text(ref: str) -> bool:
    try:
        ref.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in ref
