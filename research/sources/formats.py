"""Items and contexts as seed 002 writes them, character for character; documents as a sixth kind in the same manner.

Text of items is disarmed (`disarm`). What is too long is cut at the end of a word, with three dots and a note that says
where the rest is, and the block of code it ended in is closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from research.context.fit import fit
from research.context.page_breaks import neutralize_page_marks
from research.context.tokens import TokenCounter
from research.models import Item, page_link, section_of
from research.sources.disarm import code_block, code_lines, code_span, contained, in_line, open_fence
from research.sources.records import (
    Candidate,
    CodeResult,
    CommitResult,
    ContextItem,
    DocumentResult,
    ExperienceResult,
    MemoryResult,
    Result,
    ValueResult,
)

TITLES: Mapping[str, str] = {
    "memories": "Memories",
    "code": "Code",
    "experiences": "Experiences",
    "values": "Values",
    "commits": "Commits",
    "documents": "Documents",
}
DOTS = "..."
_INDENT = "  "  # of the lines of a list's entry
_FILES = 2  # of a commit that are named
_ENOUGH = 8  # characters a token, more than text of any language has
_LEAST_BODY = 28  # tokens of an item's own words that are always shown: cut to less it says nothing
_LEAST_CUT = 8  # characters below which what is left of an item says nothing


def memory(found: MemoryResult) -> Candidate:
    head = "**Memory**: "
    content = f"{head}{contained(found.content, begins_line=False)}\n"
    content += f"*Category: {in_line(found.category or 'memory')}, Importance: {round(float(found.importance), 4)}*"
    metadata = {
        "id": found.id,
        "category": found.category,
        "importance": found.importance,
        "created_at": str(found.created_at),
    }
    return _candidate("memory", content, found.score, metadata, found.id, text=found.content, head=len(head))


def code(found: CodeResult) -> Candidate:
    place = f"{found.file_path}:{found.start_line}"
    head = f"**{in_line(found.unit_type)}** {code_span(found.name or found.qualified_name)} in {code_span(place)}\n"
    parts = [code_lines(part) for part in (found.signature, found.docstring)]
    body = "\n".join(part for part in parts if part.strip())
    metadata = {
        "file_path": found.file_path,
        "start_line": found.start_line,
        "end_line": found.end_line,
        "language": found.language,
        "qualified_name": found.qualified_name,
    }
    candidate = _candidate(
        "code",
        head + code_block(body, found.language),
        found.score,
        metadata,
        (found.ref or f"code:{found.file_path}#{found.qualified_name}").removeprefix("code:"),
        text=body,
        head=len(head) + len(f"```{found.language}\n"),
    )
    note = f"\n\n*(truncated, see full at {in_line(place)})*"
    return replace(candidate, note=note, files=frozenset({found.file_path, found.path} - {""}))


def experience(found: ExperienceResult, *, with_cause: bool = False) -> Candidate:
    """`with_cause`: also with its root cause, which the seed's format leaves out."""
    outcome = in_line(found.outcome_status)
    if found.outcome_result.strip():
        outcome += f" - {_entry(found.outcome_result)}"
    head = f"**Experience**: {in_line(found.domain)} | {in_line(found.strategy)}\n"
    lines = [
        f"- **Goal**: {_entry(found.goal)}",
        f"- **Hypothesis**: {_entry(found.hypothesis)}",
        f"- **Action**: {_entry(found.action)}",
        f"- **Prediction**: {_entry(found.prediction)}",
        f"- **Outcome**: {outcome}",
    ]
    further = {"Surprise": found.surprise, "Lesson": found.lesson, "Root cause": found.root_cause if with_cause else ""}
    lines += [f"- **{name}**: {_entry(told)}" for name, told in further.items() if told and told.strip()]
    metadata = {
        "id": found.id,
        "domain": found.domain,
        "strategy": found.strategy,
        "outcome_status": found.outcome_status,
        "confidence_tier": found.confidence_tier,
        "iteration_count": found.iteration_count,
    }
    told = (found.goal, found.hypothesis, found.action, found.prediction, found.outcome_result, found.surprise)
    candidate = _candidate(
        "experience",
        head + "\n".join(lines),
        found.score,
        metadata,
        found.id,
        text="\n".join(part for part in (*told, found.lesson) if part),
        head=len(head) + len("- **Goal**: "),
    )
    return replace(candidate, note=f"\n\n*(truncated, full experience ID: {in_line(found.id)})*", experience=found.id)


def value(found: ValueResult) -> Candidate:
    head = f"**Value** ({in_line(found.axis)}, cluster size: {found.cluster_size}):\n"
    metadata = {
        "id": found.id,
        "axis": found.axis,
        "cluster_id": found.cluster_id,
        "cluster_size": found.cluster_size,
        "similarity_to_centroid": found.similarity_to_centroid,
    }
    content = head + contained(found.text)
    candidate = _candidate("value", content, found.score, metadata, found.id, text=found.text, head=len(head))
    return replace(candidate, experience=found.experience)


def commit(found: CommitResult) -> Candidate:
    sha = code_span(found.sha[:7])
    head = f"**Commit** {sha} by {in_line(found.author)} on {in_line(str(found.timestamp))}\n"
    content = head + contained(found.message)
    if found.files_changed:
        named = [in_line(name) for name in found.files_changed[:_FILES]]
        content += f"\n*Files: {', '.join([*named, DOTS] if len(found.files_changed) > _FILES else named)}*"
    metadata = {
        "sha": found.sha,
        "author": found.author,
        "timestamp": str(found.timestamp),
        "files_changed": list(found.files_changed),
        "insertions": found.insertions,
        "deletions": found.deletions,
    }
    candidate = _candidate("commit", content, found.score, metadata, found.sha, text=found.message, head=len(head))
    files = set(found.files_changed)
    if found.repository:
        files |= {f"{found.repository.rstrip('/')}/{name}" for name in found.files_changed}
    return replace(candidate, files=frozenset(files))


class DocumentFormat:
    """A page with its file and number above it, as the pipeline's renderers have it."""

    def joint(self, before: object, item: object) -> str:
        return ""

    def entry(self, item: Item, number: int) -> str:
        return f"{self.header(item, number)}\n{self.body(item.text)}"

    def end(self, items: object) -> str:
        return ""

    def header(self, item: Item, number: int) -> str:
        return f"**Document**: {in_line(str(item.metadata['filename']))}, Page {item.ref.part}"

    def body(self, text: str) -> str:
        return contained(text)


def document(found: DocumentResult) -> Candidate:
    item, written = replace(found.item, text=neutralize_page_marks(found.item.text)), DocumentFormat()
    head = f"{written.header(item, 1)}\n"
    facts = item.metadata
    metadata = {
        "doc_id": item.ref.key,
        "filename": facts["filename"],
        "page": int(item.ref.part),
        "page_label": facts.get("page_label", ""),
        "section_path": section_of(item)[0],
        "link": page_link(str(facts.get("source_path", "")), int(item.ref.part)),
    }
    candidate = _candidate(
        "document", head + written.body(item.text), found.score, metadata, "", text=item.text, head=len(head)
    )
    named = replace(candidate.item, ref=str(item.ref), suspicious=list(item.signals))
    place = f"{in_line(str(facts['filename']))}, Page {item.ref.part}"
    return replace(candidate, item=named, page=item, note=f"\n\n*(truncated, see full at {place})*")


_FORMATS: Mapping[type[Any], Callable[[Any], Candidate]] = {
    MemoryResult: memory,
    CodeResult: code,
    ExperienceResult: experience,
    ValueResult: value,
    CommitResult: commit,
    DocumentResult: document,
}


def candidate_of(found: Result) -> Candidate:
    return _FORMATS[type(found)](found)


def capped(candidate: Candidate, most: int, counter: TokenCounter) -> Candidate | None:
    """The candidate within so many tokens, its note included; or within the few that its labels, its note and some
    words need. None if nothing of it has room."""
    content = candidate.item.content
    most = max(most, counter.count(content[: candidate.head]) + counter.count(candidate.note) + _LEAST_BODY)
    if tokens_up_to(content, most, counter) <= most:
        return candidate
    if candidate.page is not None:
        shown = _around_passages(candidate.page, most - counter.count(candidate.note) - 1, counter)
        shown = f"{shown}{candidate.note}" if shown else ""
    else:
        shown = _cut(content, candidate.head, candidate.note, most, counter)
    if not shown or counter.count(shown) > most:
        return None
    return replace(candidate, item=replace(candidate.item, content=shown, truncated=True))


def _around_passages(page: Item, most: int, counter: TokenCounter) -> str:
    """The page's best passages with as much around them as has room, […] for what is left out."""
    fitted = fit([page], max(0, most), DocumentFormat(), counter)
    return fitted.text if fitted.items else ""


def _cut(content: str, head: int, note: str, most: int, counter: TokenCounter) -> str:
    """As many whole words as fit; where words are not parted by spaces, as many characters."""
    length, left = 0, most - counter.count(DOTS + note)
    for piece in counter.pieces(content[: _ENOUGH * most]):
        left -= counter.count_pieces([piece])
        if left < 0:
            break
        length += len(piece)
    words = [match.start() for match in re.finditer(r"(?<=\S)(?=\s)", content[: length + 1])]
    words = [end for end in reversed(words) if end >= head + max(_LEAST_CUT, (length - head) // 2)]
    for end in words or _shrinking(_ENOUGH * most, head + _LEAST_CUT):
        shown = content[:end] + DOTS
        fence = open_fence(shown)
        shown += f"\n{fence}{note}" if fence else note
        if counter.count(shown) <= most:
            return shown
    return ""


def _shrinking(length: int, least: int) -> Iterator[int]:
    while length > least:
        yield length
        length = length * 4 // 5


def tokens_up_to(content: str, most: int, counter: TokenCounter) -> int:
    """How many it has; of a long one that has more than `most`, some number above that."""
    if len(content) > _ENOUGH * most:
        found = counter.count(content[: _ENOUGH * most])
        if found > most + 1:  # where it was cut off, one token may become two
            return found
    return counter.count(content)


def markdown(title: str, sections: Sequence[tuple[str, Sequence[str]]], footer: str) -> str:
    """A context: its title, a heading above each section's items, and the line below all of them."""
    parts = [f"# {title}"]
    parts += [f"## {heading}\n" + "\n\n".join(contents) for heading, contents in sections if contents]
    return "\n\n".join([*parts, f"---\n*{footer}*"])


def _entry(text: str) -> str:
    """A field in its entry of a list."""
    return contained(text, begins_line=False, indent=_INDENT)


def _candidate(
    source: str, content: str, score: float, metadata: dict[str, Any], key: str, *, text: str, head: int
) -> Candidate:
    item = ContextItem(source, content, score, metadata, score, f"{source}:{key}")
    return Candidate(item, text, head=head)
