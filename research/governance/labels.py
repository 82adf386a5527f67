"""What things are to a policy: classification, status, module and project, given by people to a thing, to a pattern of
paths or to a tag.

Where several apply to a thing, the strictest classification holds, and of each other label that of the most specific
target: the thing itself, the document, the longest pattern, a tag. A pattern that begins with / is that of a whole
path; any other may begin at any folder. `*` stands for anything, slashes included, and whatever lies below a folder
that it fits is meant, too. It also holds for files that are not there yet.

Marks of classification on pages ("Strictly confidential"): a proposal, which holds once a person accepts it.

A mark is a line of its own: at the top or the bottom of a page, or in capitals like a stamp. The word in a sentence is
none, nor is a heading in the middle of a page about classification. To look for them, the text of every page is
unpacked once: about a second for ten thousand pages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from research.errors import NothingFoundError, UsageError
from research.governance.access import CLASSIFICATIONS
from research.store import (
    NAMES,
    PATH,
    TAG,
    Label,
    all_documents,
    fold,
    is_tag,
    labels_at,
    list_labels,
    matcher,
    put_labels,
    remove_labels,
    rules,
    select_documents,
    shown,
)

if TYPE_CHECKING:
    from research.governance.access import Resource
    from research.store import Catalog, Reader

__all__ = ["Facts", "Label", "LabelRules", "Labels", "facts_of", "path_matcher", "strictest"]

_LONGEST_PATTERN = 4000


@dataclass(frozen=True, slots=True)
class Facts:
    """What holds for a thing, of all labels that apply to it."""

    classification: str
    status: str = ""
    module: str = ""
    project: str = ""


def strictest(classifications: Iterable[str]) -> str:
    """Of several; empty if there is none. What is no classification of ours counts as the strictest."""
    known = {name: level for level, name in enumerate(CLASSIFICATIONS)}
    levels = [known.get(each, len(CLASSIFICATIONS) - 1) for each in classifications]
    return CLASSIFICATIONS[max(levels)] if levels else ""


class LabelRules:
    """The labels of paths and tags, ready to be asked about many things."""

    def __init__(self, reader: Reader) -> None:
        known, key = reader.count_cache(), "matchers of labels"
        if key not in known:
            found = rules(reader)
            known[key] = (
                [
                    (label, path_matcher(label.target.removeprefix(PATH)))
                    for label in found
                    if label.target.startswith(PATH)
                ],
                [label for label in found if label.target.startswith(TAG)],
            )
        self._paths: list[tuple[Label, Callable[[str], bool]]]
        self._tags: list[Label]
        self._paths, self._tags = known[key]

    def of(self, paths: Sequence[str], tags: Iterable[str]) -> Iterator[Label]:
        """Those that apply, the most specific first."""
        if self._paths:
            folded = [f"{fold(path)}/" for path in paths if path]
            fitting = [label for label, fits in self._paths if any(map(fits, folded))]
            yield from sorted(fitting, key=lambda label: (-len(label.target), label.target))
        if self._tags:
            wanted = {f"{TAG}{tag}" for tag in tags}
            yield from (label for label in self._tags if label.target in wanted)


def facts_of(labels: Iterable[Label], default: str) -> Facts:
    """What several labels make together, the most specific first. `default` is the classification of what has none."""
    first: dict[str, str] = {}
    classifications = []
    for label in labels:
        if label.name == "classification":
            classifications.append(label.value)
        else:
            first.setdefault(label.name, label.value)
    return Facts(strictest(classifications) or default, **first)


def path_matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a folded path, with a slash at its end, is one of the pattern or lies below a folder that is."""
    folded = fold(pattern).rstrip("/")
    return matcher(f"{folded}/*" if pattern.startswith("/") else f"*/{folded}/*")


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

    def put(self, target: str, values: dict[str, str], *, tenant: str = "", origin: str = "user") -> list[Label]:
        """Give what `target` means these labels, in place of those it has by the same names."""
        checked = {name: _checked(name, value) for name, value in values.items()}
        if not checked:
            raise UsageError("no label is named", hint=f"name one or more of: {', '.join(NAMES)}")
        self._create()
        now = datetime.now(UTC).isoformat()
        labels = [
            Label(each, name, value, self._tenant_of(each, tenant), origin, now)
            for each in self.targets(target, tenant=tenant)
            for name, value in checked.items()
        ]
        put_labels(self._catalog(), labels)
        return labels

    def remove(self, target: str, names: Sequence[str] = NAMES, *, tenant: str = "") -> int:
        """Take labels away; how many there were. Those it has not are no fault."""
        catalog = self._catalog()
        targets = self.targets(target, tenant=tenant, known=False)
        return sum(remove_labels(catalog, self._tenant_of(each, tenant), each, names) for each in targets)

    def listed(self, target: str = "", *, tenant: str = "") -> list[Label]:
        """All there are, or those of a target itself."""
        if not self._exists():
            return []
        with self._catalog().snapshot() as reader:
            if not target:
                return list_labels(reader)
            targets = self.targets(target, tenant=tenant, known=False)
            found = [
                label
                for each in targets
                for label in labels_at(reader, self._tenant_of(each, tenant), [each]).get(each, [])
            ]
            return sorted(found, key=lambda label: (label.target, label.name))

    def holding(self, target: str, *, default: str, tenant: str = "") -> list[Resource]:
        """What a policy is told of the things that `target` means; `default` is what nobody has classified."""
        from research.governance.access import Principal
        from research.governance.resources import resources_of

        targets = self.targets(target, tenant=tenant)
        with self._catalog().snapshot() as reader:
            return resources_of(reader, targets, Principal("", tenant), default=default)

    def proposals(self) -> list[Proposal]:
        """What pages say of their documents ("Confidential"), of those that nobody has classified."""

        if not self._exists():
            return []
        with self._catalog().snapshot() as reader:
            return proposals(reader)

    def accept(self, proposals: Iterable[Proposal]) -> list[Label]:
        """Classify documents as their pages say."""
        now = datetime.now(UTC).isoformat()
        labels = [
            Label(f"document:{each.file_id}", "classification", each.classification, "", "mark", now)
            for each in proposals
        ]
        put_labels(self._catalog(), labels)
        return labels

    def names(self) -> dict[str, str]:
        """Lasting id → file name, to show what labels are of."""
        if not self._exists():
            return {}
        with self._catalog().snapshot() as reader:
            return {info.file_id: info.filename for info in all_documents(reader)}

    def targets(self, target: str, *, tenant: str = "", known: bool = True) -> list[str]:
        """What is meant, as labels are kept: a pattern, a tag, a ref with lasting ids, or the documents of a name, path
        or pattern. Raises `NothingFoundError` for what there is not; without `known` a ref may be gone."""
        from research.governance.access import Principal
        from research.governance.resources import lasting_targets

        if target.startswith(PATH):
            return [self._pattern(target.removeprefix(PATH))]
        if target.startswith(TAG):
            if not is_tag(target.removeprefix(TAG)):
                raise UsageError(f"{shown(target)} names no tag", hint="tag:NAME, one line")
            return [target]
        with self._catalog().snapshot() as reader:
            found = lasting_targets(reader, [target], Principal("", tenant)).get(target)
            if found:
                return [found]
            if _is_ref(target):
                if not known:
                    return [target]
                raise NothingFoundError(f"there is no {shown(target)} in the index", hint="see: ctx list")
            return [f"document:{each.file_id}" for each in select_documents(reader, [target], self._relative_to)]

    def _pattern(self, pattern: str) -> str:
        """`~` and a leading ./ or ../ are the caller's own, so they become a whole path here."""
        if pattern.startswith("~") or pattern.split("/", 1)[0] in (".", ".."):
            pattern = os.path.normpath(os.path.join(self._relative_to or os.getcwd(), os.path.expanduser(pattern)))  # noqa: PTH109, PTH111, PTH118
        pattern = pattern if pattern == "/" else pattern.rstrip("/")
        if not pattern or not pattern.isprintable() or len(pattern) > _LONGEST_PATTERN:
            raise UsageError(f"{shown(pattern)} is no pattern of paths", hint="path:hr/*, or path:/home/me/hr")
        return f"{PATH}{pattern}"

    def _tenant_of(self, target: str, tenant: str) -> str:
        return tenant if target.startswith(("memory:", "session:")) else ""


def _is_ref(target: str) -> bool:
    from research.governance.resources import KINDS

    kind, colon, rest = target.partition(":")
    return bool(colon and rest) and kind in KINDS


def _checked(name: str, value: str) -> str:
    if name not in NAMES:
        raise UsageError(f"there is no label {shown(name)}", hint=f"choose from: {', '.join(NAMES)}")
    if name == "classification":
        for known in CLASSIFICATIONS:
            if known.lower() == value.strip().lower():
                return known
        raise UsageError(f"{shown(value)} is no classification", hint=f"choose one of: {', '.join(CLASSIFICATIONS)}")
    value = value.strip()
    if not is_tag(value):
        raise UsageError(f"{shown(value)} cannot be a {name}", hint="use one line of up to 100 characters")
    return value


_LONGEST = 80  # characters of a line
_EDGE = 3  # lines at the top and at the bottom
_MOST_PAGES = 10  # that a proposal names

# English, German, French and Spanish. The strictest first: "strictly confidential" is more than "confidential".
_WORDS = {
    "Restricted": (
        "restricted|top secret|secret|(?:strictly|highly|most) (?:private (?:and|&) )?confidential|strictly private"
        "|streng (?:vertraulich|geheim)|geheim|strictement confidentiel|estrictamente confidencial"
    ),
    "Confidential": (
        "(?:(?:company|business|client|commercial(?:ly)?|private (?:and|&)) )?confidential|commercial in confidence"
        "|(?:firmen)?vertraulich|confidentiel|confidencial"
    ),
    "Internal": (
        "(?:for )?internal(?: use)?(?: only)?|company internal|nur (?:für|zum|zur) (?:den )?internen gebrauch|intern"
        "|usage interne|(?:de )?uso interno"
    ),
}
_BEFORE = r"(?:(?:document |security |information )?(?:classification|klassifizierung)\s*[:–—-]\s*)?"
_MORE = (
    r"do not (?:copy|distribute|share|forward|circulate)|not for (?:distribution|publication|circulation|release)"
    r"|(?:and |& )?proprietary|draft|entwurf|for internal use only|internal use only|information|document|material"
    r"|all rights reserved|nicht (?:weitergeben|zur weitergabe)"
    r"|(?:page|seite|p\.)\s*\d{1,5}(?:\s*(?:of|/|von)\s*\d{1,5})?|\d{1,5}"
)
_LAST = r"(?:property of|©|\(c\)|copyright)[^\n]{0,60}"  # whose it is, in any words
_JOINT = r"[\s\-–—|·•:,/.()\[\]]"
_MARKS = {
    level: re.compile(
        rf"{_BEFORE}(?:{words})(?:{_JOINT}{{1,5}}(?:{_MORE})){{0,3}}(?:{_JOINT}{{1,5}}{_LAST}|{_JOINT}{{0,3}})", re.I
    )
    for level, words in _WORDS.items()
}
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


def mark_of(line: str) -> str:
    """The classification that a line by itself says; empty for any other line."""
    if len(line) > _LONGEST:
        return ""
    bare = " ".join(_DRESS.sub("", line).split())
    return next((level for level, pattern in _MARKS.items() if pattern.fullmatch(bare)), "")


def marks_on(text: str) -> Iterator[tuple[str, str]]:
    """(classification, line) of each mark on a page."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        at_edge = number < _EDGE or number >= len(lines) - _EDGE
        if (at_edge or line.isupper()) and (level := mark_of(line)):
            yield level, line


def proposals(reader: Reader) -> list[Proposal]:
    """One for each document with a mark that nobody has classified, the strictest of its marks; by name."""
    from research.store import all_documents, document_markdown, labels_at

    found = []
    for info in all_documents(reader):
        decided = labels_at(reader, "", [f"document:{info.file_id}"])
        if any(label.name == "classification" for labels in decided.values() for label in labels):
            continue
        seen = [
            (CLASSIFICATIONS.index(level), line, page)
            for page, text in document_markdown(reader, info.doc_id)
            for level, line in marks_on(text)
        ]
        if not seen:
            continue
        strictest = max(level for level, _, _ in seen)
        lines = [(line, page) for level, line, page in seen if level == strictest]
        pages = tuple(dict.fromkeys(page for _, page in lines))[:_MOST_PAGES]
        found.append(Proposal(info.doc_id, info.file_id, info.filename, CLASSIFICATIONS[strictest], lines[0][0], pages))
    return sorted(found, key=lambda each: (each.filename, each.doc_id))
