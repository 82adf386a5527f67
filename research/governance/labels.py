"""What things are to a policy: labels (classification, status, module and project), given by people to a thing, to a
pattern of paths or to a tag; and refs become resources, in bulk, from one reader.

Where several apply to a thing, the strictest classification holds, and of each other label that of the most specific
target: the thing itself, the document, the longest pattern, a tag. A pattern that begins with / is that of a whole
path; any other may begin at any folder. `*` stands for anything, slashes included, and whatever lies below a folder
that it fits is meant, too. It also holds for files that are not there yet.

A page inherits from its document, a piece of code from its file, a commit from its repository and the files it changed,
an axis of an experience from the experience, a value and a summary from what they were made of. What there is not, or
not for this tenant, is a resource of the kind `unknown`, which is denied without asking anybody.

Marks of classification on pages ("Strictly confidential") are a proposal, which holds once a person accepts it. A mark
is a line of its own: at the top or the bottom of a page, or in capitals like a stamp. The word in a sentence is none,
nor is a heading in the middle of a page about classification. To look for them, the text of every page is unpacked
once: about a second for ten thousand pages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from research.errors import NothingFoundError, UsageError
from research.governance.access import CLASSIFICATIONS, UNKNOWN, Principal, Resource
from research.store import KINDS as ITEM_KINDS
from research.store import NAMES, PATH, TAG, Label, fold, governance, is_tag, matcher, shown

if TYPE_CHECKING:
    from research.store import Catalog, Reader

__all__ = ["Label", "LabelRules", "Labels", "path_matcher", "resources_of", "strictest"]

KINDS = ("page", "document", "section", "file", "memory", "session", *ITEM_KINDS)
_LONGEST_REF = 1 << 14  # characters; what is longer is none of ours
_LONGEST_PATTERN = 4000


def strictest(classifications: Iterable[str]) -> str:
    """Return the strictest of several; empty if there is none. What is no classification of ours counts as the
    strictest."""
    known = {name: level for level, name in enumerate(CLASSIFICATIONS)}
    levels = [known.get(each, len(CLASSIFICATIONS) - 1) for each in classifications]
    return CLASSIFICATIONS[max(levels)] if levels else ""


def facts_of(labels: Iterable[Label], default: str) -> dict[str, str]:
    """Return what several labels make together, the most specific first. `default` is the classification of what has
    none."""
    first: dict[str, str] = {}
    classifications = []
    for label in labels:
        if label.name == "classification":
            classifications.append(label.value)
        else:
            first.setdefault(label.name, label.value)
    return {**first, "classification": strictest(classifications) or default}


class LabelRules:
    """The labels of paths and tags, ready to be asked about many things."""

    def __init__(self, reader: Reader) -> None:
        known, key = reader.count_cache(), "matchers of labels"
        if key not in known:
            found = reader.labels.rules()
            paths = [each for each in found if each.target.startswith(PATH)]
            known[key] = (
                [(each, path_matcher(each.target.removeprefix(PATH))) for each in paths],
                [each for each in found if each.target.startswith(TAG)],
            )
        self._paths: list[tuple[Label, Callable[[str], bool]]]
        self._tags: list[Label]
        self._paths, self._tags = known[key]

    def of(self, paths: Sequence[str], tags: Iterable[str]) -> Iterator[Label]:
        """Yield the labels that apply, the most specific first."""
        if self._paths:
            folded = [f"{fold(path)}/" for path in paths if path]
            fitting = [label for label, fits in self._paths if any(map(fits, folded))]
            yield from sorted(fitting, key=lambda label: (-len(label.target), label.target))
        if self._tags:
            wanted = {f"{TAG}{tag}" for tag in tags}
            yield from (label for label in self._tags if label.target in wanted)


def path_matcher(pattern: str) -> Callable[[str], bool]:
    """Return whether a folded path, with a slash at its end, is one of the pattern or lies below a folder that is."""
    folded = fold(pattern).rstrip("/")
    return matcher(f"{folded}/*" if pattern.startswith("/") else f"*/{folded}/*")


@dataclass(frozen=True, slots=True)
class _Named:
    """What a ref names: `targets` are those that labels are kept under, its own first."""

    kind: str
    targets: tuple[str, ...]
    paths: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    tenant: str = ""


def resources_of(
    reader: Reader, refs: Sequence[str], principal: Principal, *, default: str = "Internal"
) -> list[Resource]:
    """Return one resource for each ref, in order. `default` is the classification of what nobody has classified."""
    named = dict(_named(reader, refs, principal.tenant))
    by_tenant: dict[str, list[str]] = {}
    for each in named.values():
        by_tenant.setdefault(each.tenant, []).extend(each.targets)
    labels = {tenant: reader.labels.at(tenant, targets) for tenant, targets in by_tenant.items()}
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
        path = thing.paths[0] if thing.paths else ""
        found.append(Resource(ref, thing.kind, path, thing.tags, tenant=thing.tenant, **facts))
    return found


def _named(reader: Reader, refs: Iterable[str], tenant: str) -> Iterator[tuple[str, _Named]]:
    """Yield each ref that there is, with what it names."""
    by_kind: dict[str, dict[str, str]] = {}  # kind → ref → what follows the colon
    for ref in dict.fromkeys(refs):
        kind, _, rest = ref.partition(":")
        if rest and kind in KINDS and len(ref) <= _LONGEST_REF and _is_text(ref):
            by_kind.setdefault(kind, {})[ref] = rest
    for kind, wanted in by_kind.items():
        if kind in ("page", "document", "section"):
            yield from _documents(reader, kind, wanted)
        elif kind == "file":  # of source code, as the graph has it: nothing but a path
            yield from ((ref, _Named(kind, (ref,), (rest,))) for ref, rest in wanted.items())
        elif kind == "memory":
            memories = reader.governance.memories(tenant, wanted.values())
            for ref, rest in wanted.items():
                if rest in memories:
                    targets = (ref, *(f"memory:{each}" for each in memories[rest].made_from))
                    yield ref, _Named(kind, targets, tags=memories[rest].tags, tenant=tenant)
        elif kind == "session":
            there = reader.governance.sessions(tenant, wanted.values())
            yield from ((ref, _Named(kind, (ref,), tenant=tenant)) for ref, rest in wanted.items() if rest in there)
        else:
            yield from _items(reader, kind, wanted)


def _documents(reader: Reader, kind: str, wanted: dict[str, str]) -> Iterator[tuple[str, _Named]]:
    """A section is as its document is: its heading may stand on any page of it."""
    split = {ref: (rest, 1) if kind == "document" else _page(rest) for ref, rest in wanted.items()}
    there = reader.governance.documents([key for key, _ in split.values()])
    for ref, (key, page) in split.items():
        document = there.get(key)
        if document is not None and (kind == "section" or 0 < page <= document.num_pages):
            targets = _document_targets(document, page if kind == "page" else 0)
            yield ref, _Named(kind, targets, document.paths, document.tags)


def _page(rest: str) -> tuple[str, int]:
    """Return the document and the number of the page, 0 where it is none: `٣` and `007` are no numbers of ours."""
    key, _, number = rest.rpartition("#")
    plain = number.isascii() and number.isdigit() and not number.startswith("0") and len(number) < 10
    return key, int(number) if plain else 0


def _document_targets(document: governance.GovernedDocument, page: int) -> tuple[str, ...]:
    whole = tuple(f"document:{each}" for each in document.ids)
    return (*(f"page:{each}#{page}" for each in document.ids), *whole) if page else whole


def _items(reader: Reader, kind: str, wanted: dict[str, str]) -> Iterator[tuple[str, _Named]]:
    there = reader.governance.items(kind, wanted.values())
    for ref, rest in wanted.items():
        item = there.get(rest)
        if item is None:
            continue
        targets = tuple(dict.fromkeys((ref, f"{kind}:{item.parent}", *item.made_from)))
        paths: tuple[str, ...] = ()
        if kind in ("code", "commit"):
            folder = item.parent.removesuffix("/.git")
            paths = (folder, *(f"{folder}/{file}" for file in item.files))
        yield ref, _Named(kind, targets, paths)


def _is_text(ref: str) -> bool:
    try:
        ref.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in ref


class Labels:
    """Labels of one index, given, taken away and listed."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        *,
        exists: Callable[[], bool] = lambda: True,
        create: Callable[[], object] = lambda: None,
        relative_to: str = "",
    ) -> None:
        """A rule may stand before anything is ingested: `create` then makes the catalog."""
        self._catalog = catalog
        self._exists, self._create = exists, create
        self._relative_to = relative_to

    def put(self, target: str, values: dict[str, str], *, tenant: str = "") -> list[Label]:
        """Give what `target` means these labels, in place of those it has by the same names."""
        checked = {name: _checked(name, value) for name, value in values.items()}
        if not checked:
            raise UsageError("no label is named", hint=f"name one or more of: {', '.join(NAMES)}")
        self._create()
        now = datetime.now(UTC).isoformat()
        labels = [
            Label(each, name, value, _tenant_of(each, tenant), "user", now)
            for each in self._targets(target, tenant)
            for name, value in checked.items()
        ]
        self._catalog().labels.put(labels)
        return labels

    def remove(self, target: str, names: Sequence[str] = NAMES, *, tenant: str = "") -> int:
        """Take labels away and return how many there were. Labels it has not are no fault."""
        catalog = self._catalog()
        targets = self._targets(target, tenant, known=False)
        return sum(catalog.labels.remove(_tenant_of(each, tenant), each, names) for each in targets)

    def listed(self, target: str = "", *, tenant: str = "") -> list[Label]:
        """List all labels, or those of a target itself."""
        if not self._exists():
            return []
        with self._catalog().snapshot() as reader:
            if not target:
                return reader.labels.all()
            found = [
                label
                for each in self._targets(target, tenant, known=False)
                for label in reader.labels.at(_tenant_of(each, tenant), [each]).get(each, [])
            ]
            return sorted(found, key=lambda label: (label.target, label.name))

    def holding(self, target: str, *, default: str, tenant: str = "") -> list[Resource]:
        """Return what a policy is told of the things that `target` means; `default` is what nobody has classified."""
        targets = self._targets(target, tenant)
        with self._catalog().snapshot() as reader:
            return resources_of(reader, targets, Principal("", tenant), default=default)

    def proposals(self) -> list[Proposal]:
        """Return what pages say of their documents ("Confidential"), of those that nobody has classified: one for each
        document, the strictest of its marks; by name."""
        if not self._exists():
            return []
        with self._catalog().snapshot() as reader:
            found = [_proposal(reader, info.doc_id, info.file_id, info.filename) for info in reader.documents.all()]
        return sorted((each for each in found if each is not None), key=lambda each: (each.filename, each.doc_id))

    def accept(self, proposals: Iterable[Proposal]) -> list[Label]:
        """Classify documents as their pages say."""
        now = datetime.now(UTC).isoformat()
        labels = [
            Label(f"document:{each.file_id}", "classification", each.classification, "", "mark", now)
            for each in proposals
        ]
        self._catalog().labels.put(labels)
        return labels

    def names(self) -> dict[str, str]:
        """Return lasting id → file name, to show what labels are of."""
        if not self._exists():
            return {}
        with self._catalog().snapshot() as reader:
            return {info.file_id: info.filename for info in reader.documents.all()}

    def _targets(self, target: str, tenant: str, *, known: bool = True) -> list[str]:
        """Return what is meant, as labels are kept: a pattern, a tag, a ref with lasting ids, or the documents of a
        name, path or pattern. Raises `NothingFoundError` for what there is not; without `known` a ref may be gone."""
        if target.startswith(PATH):
            return [self._pattern(target.removeprefix(PATH))]
        if target.startswith(TAG):
            if not is_tag(target.removeprefix(TAG)):
                raise UsageError(f"{shown(target)} names no tag", hint="tag:NAME, one line")
            return [target]
        with self._catalog().snapshot() as reader:
            for _, named in _named(reader, [target], tenant):
                return [named.targets[0]]
            kind, _, rest = target.partition(":")
            if not rest or kind not in KINDS:
                return [f"document:{each.file_id}" for each in reader.names.select([target], self._relative_to)]
            if not known:
                return [target]
            raise NothingFoundError(f"there is no {shown(target)} in the index", hint="see: ctx list")

    def _pattern(self, pattern: str) -> str:
        """`~` and a leading ./ or ../ are the caller's own, so they become a whole path here."""
        if pattern.startswith("~") or pattern.split("/", 1)[0] in (".", ".."):
            pattern = os.path.normpath(os.path.join(self._relative_to or os.getcwd(), os.path.expanduser(pattern)))  # noqa: PTH109, PTH111, PTH118
        pattern = pattern if pattern == "/" else pattern.rstrip("/")
        if not pattern or not pattern.isprintable() or len(pattern) > _LONGEST_PATTERN:
            raise UsageError(f"{shown(pattern)} is no pattern of paths", hint="path:hr/*, or path:/home/me/hr")
        return f"{PATH}{pattern}"


def _tenant_of(target: str, tenant: str) -> str:
    return tenant if target.startswith(("memory:", "session:")) else ""


def _checked(name: str, value: str) -> str:
    if name not in NAMES:
        raise UsageError(f"there is no label {shown(name)}", hint=f"choose from: {', '.join(NAMES)}")
    value = value.strip()
    if name == "classification":
        for known in CLASSIFICATIONS:
            if known.lower() == value.lower():
                return known
        raise UsageError(f"{shown(value)} is no classification", hint=f"choose one of: {', '.join(CLASSIFICATIONS)}")
    if not is_tag(value):
        raise UsageError(f"{shown(value)} cannot be a {name}", hint="use one line of up to 100 characters")
    return value


_LONGEST_MARK = 80  # characters of a line
_EDGE = 3  # lines at the top and at the bottom
_MOST_PAGES = 10  # that a proposal names
_DRESS = re.compile(r"^[\s#>*_|~`\-–—•·\[(<{=]+|[\s*_|~`\-–—•·\])>}=]+$")


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the pages of a document say of it. `mark` is the line as it stands there."""

    doc_id: str
    file_id: str
    filename: str
    classification: str
    mark: str
    pages: tuple[int, ...]


@cache
def _marks() -> dict[str, re.Pattern[str]]:
    """Of languages/*.toml, the strictest first: "strictly confidential" is more than "confidential"."""
    from research.governance.patterns import languages

    marks = [language["marks"] for language in languages() if "marks" in language]

    def any_of(field: str) -> str:
        return "|".join(each[field] for each in marks if field in each)

    before = rf"(?:(?:{any_of('before')})\s*[:–—-]\s*)?"
    more = rf"{any_of('more')}|\d{{1,5}}"
    last = r"(?:property of|©|\(c\)|copyright)[^\n]{0,60}"  # whose it is, in any words
    joint = r"[\s\-–—|·•:,/.()\[\]]"
    rest = rf"(?:{joint}{{1,5}}(?:{more})){{0,3}}(?:{joint}{{1,5}}{last}|{joint}{{0,3}})"
    levels = CLASSIFICATIONS[:0:-1]
    return {level: re.compile(rf"{before}(?:{any_of(level)}){rest}", re.I) for level in levels}


def mark_of(line: str) -> str:
    """Return the classification that a line by itself says; empty for any other line."""
    if len(line) > _LONGEST_MARK:
        return ""
    bare = " ".join(_DRESS.sub("", line).split())
    return next((level for level, pattern in _marks().items() if pattern.fullmatch(bare)), "")


def marks_on(text: str) -> Iterator[tuple[str, str]]:
    """Yield (classification, line) of each mark on a page."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        at_edge = number < _EDGE or number >= len(lines) - _EDGE
        if (at_edge or line.isupper()) and (level := mark_of(line)):
            yield level, line


def _proposal(reader: Reader, doc_id: str, file_id: str, filename: str) -> Proposal | None:
    decided = reader.labels.at("", [f"document:{file_id}"])
    if any(label.name == "classification" for labels in decided.values() for label in labels):
        return None
    seen = [
        (level, line, page) for page, text in reader.pages.document_markdown(doc_id) for level, line in marks_on(text)
    ]
    level = strictest(level for level, _, _ in seen)
    found = [(line, page) for each, line, page in seen if each == level]
    if not found:
        return None
    pages = tuple(dict.fromkeys(page for _, page in found))[:_MOST_PAGES]
    return Proposal(doc_id, file_id, filename, level, found[0][0], pages)
