"""Retrievals of a package, side by side: the search of each type of source, and what structured filters name.

Each has its time; one that fails, or is late, is named in `coverage`, and the rest answers. The graph (`near`) begins
with what is pinned and with the best that the search found, so it waits for that, and goes on without it where that
fails. Filters bring what they leave, whatever words it has, the newest first; without any they bring nothing. A filter
on what a kind of things has not (tags of a commit, a language of a page) leaves none of that kind.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from research.errors import CtxError, NothingFoundError, UsageError
from research.filters import Filters, read_time
from research.graph import (
    MOST_NODES,
    WEIGHTS,
    Neighbourhood,
    find_neighbourhood,
    neighbour_scores,
    references_said,
    seeds_of,
    spread,
)
from research.memories import Within
from research.models import Question, Retrieved, SourceCoverage
from research.packages.ranking import TYPE_OF_KIND, Candidate, item_sources, load
from research.packages.request import ContextBuildRequest, MetadataFilters, RetrievalCoverage, Scope
from research.parallel import Outcome
from research.search import FoundItem
from research.sources import memory_item
from research.store import analyze, analyze_name

if TYPE_CHECKING:
    from research.governance import Principal, Resource
    from research.index import Index
    from research.packages.request import ContextBuildRequest
    from research.store import Reader

_DRAWN = 1_000  # of a source, where the scope leaves only some

Status = Literal["ok", "degraded", "down", "off"]


@dataclass(slots=True)
class Answer:
    """What one retrieval gave, best first, and how it went."""

    candidates: list[Candidate] = field(default_factory=list)
    status: Status = "ok"
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    projection: str = ""  # the id of the graph's
    told: Mapping[str, Any] = field(default_factory=dict)  # and what it holds

    def coverage(self, name: str) -> RetrievalCoverage:
        return RetrievalCoverage(name=name, status=self.status, reason=self.reason, found=len(self.candidates))


Retrieve = Callable[[], Answer]


def answer_of(name: str, outcome: Outcome[Answer]) -> Answer:
    """The answer of a retrieval, or what there is to tell of its failure."""
    error = outcome.error
    if error is None:
        return outcome.result()
    if isinstance(error, NothingFoundError):  # a scope or a filter that fits nothing
        return Answer(notes=[f"{name}: {error.message}"])
    if isinstance(error, UsageError):  # a filter that cannot be understood, told with the package
        return Answer(status="down", reason=error.message)
    from research.observe import log_failure

    log_failure("packages", f"the retrieval {name} failed", error)
    # What another error says may quote a document.
    told = error.message if isinstance(error, CtxError) else str(error) if outcome.late else type(error).__name__
    return Answer(status="down", reason=told)


def vector_retrievals(
    index: Index, request: ContextBuildRequest, principal: Principal, resources: Resources
) -> dict[str, Retrieve]:
    """One for each type of source that is wanted and there. What lies outside of the scope is not among those that are
    drawn."""
    limit, scope = request.retrieval.limits.vector, request.scope
    wanted = scope.wanted_types
    if limit < 1 or "vector" not in request.retrieval.sources:
        return {}

    def search(name: str) -> Answer:
        with index.catalog.snapshot() as reader:
            if name == "documents":
                asked, retrieved = _documents(index, reader, request, resources)
            else:
                drawn = limit if scope.project is None and scope.module is None else _DRAWN
                asked = Question(request.intent, tenant=principal.tenant)
                retrieved = index.source_of(name).retrieve(reader, asked, drawn)
            within = within_scope(reader, scope, [str(item.ref) for item in retrieved.items], resources)
        index.keep_vectors([retrieved.fresh], principal.tenant)
        items = [item for item in retrieved.items if str(item.ref) in within][:limit]
        status = retrieved.status.status if retrieved.status.status in ("degraded", "down") else "ok"
        found = [
            Candidate(item, {"vector"}, item.score, expires_at=str(item.metadata.get("expires_at", "")))
            for item in items
        ]
        return Answer(found, status, retrieved.status.reason, [*retrieved.notes, *asked.notes])  # type: ignore[arg-type]

    # Documents that are named are documents, and so nothing else is asked.
    names = [name for name in wanted if name == "documents" or not scope.documents]
    return {name: partial(search, name) for name in names}


def _documents(
    index: Index, reader: Reader, request: ContextBuildRequest, resources: Resources
) -> tuple[Question, Retrieved]:
    if reader.pages.totals().pages == 0:
        return Question(request.intent), Retrieved([], SourceCoverage("documents", "ok"))
    question = index.scoped_question(reader, request.intent, request.scope.documents)
    within = documents_within(reader, request.scope, resources)
    if within is not None:
        named = within if question.documents is None else [each for each in within if each in question.documents]
        question = replace(question, documents=tuple(named))
    # A reranker elsewhere hears of nothing that may not be sent for whoever asks.
    question = index.access.asking(question)
    return question, index.source.retrieve(reader, question, request.retrieval.limits.vector)


Resources = Callable[["Reader", Sequence[str]], Sequence["Resource"]]
"""What things are to a policy: their status, module and project are labels of theirs."""

_EXACTLY, _MATCHES = 0.9, 0.5  # what a match counts at least: somebody has named it, whatever words it has
_LOOKED_AT = 5_000  # things of a kind whose labels are looked at, the newest first
_OF_MEMORIES = ("type", "category", "namespace", "session", "persona", "speaker")


def by_metadata(index: Index, request: ContextBuildRequest, tenant: str, resources: Resources) -> Answer:
    filters, limit = request.retrieval.filters, request.retrieval.limits.metadata
    if limit < 1 or not filters.given:
        return Answer(status="off", reason="no filters are given")
    wanted = request.scope.wanted_types
    found: list[Candidate] = []
    with index.catalog.snapshot() as reader:
        if "documents" in wanted and not filters.where:
            found += _documents_matching(index, reader, request, limit, resources)
        if "memories" in wanted and not request.scope.documents:
            found += _labelled(reader, _memories(reader, tenant, filters), filters, limit, resources)
        for source in item_sources(index).values():
            if source.name in wanted and not filters.tags and not request.scope.documents:
                refs = _item_refs(reader, source.kind, filters)
                loaded = (Candidate(source.item(FoundItem(each, 0.0, 0.0, {}))) for each in refs)
                found += _labelled(reader, loaded, filters, limit, resources)
    for candidate in found:
        candidate.origins.add("metadata")
        candidate.semantic = max(candidate.semantic, _EXACTLY if filters.exact is not None else _MATCHES)
    found.sort(key=lambda each: each.item.created_at, reverse=True)
    return Answer(found[:limit])


def _documents_matching(
    index: Index, reader: Reader, request: ContextBuildRequest, limit: int, resources: Resources
) -> list[Candidate]:
    """Of the documents that are left, the pages that have words of the intent; of those that have none, the first."""
    from research.errors import NothingFoundError

    filters = request.retrieval.filters
    plain = Filters(
        documents=tuple(request.scope.documents), since=filters.since or "", until=filters.until or "",
        tags=tuple(filters.tags),
    )  # fmt: skip
    try:
        question = index.scoped_question(reader, request.intent, (), plain)
    except NothingFoundError:
        return []
    chosen = _documents_left(index, reader, question, filters, resources)
    if not chosen:
        return []
    asked = replace(question, documents=tuple(chosen), mode="lexical")
    pages = [Candidate(item) for item in index.source.retrieve(reader, asked, limit).items]
    seen = {page.item.ref.key for page in pages}
    first = [f"page:{doc_id}#1" for doc_id in chosen if doc_id not in seen][: limit - len(pages)]
    return [*pages, *load(index, reader, first, "").values()]


def _documents_left(
    index: Index, reader: Reader, question: Question, filters: MetadataFilters, resources: Resources
) -> list[str]:

    known = {each.doc_id: each for each in reader.documents.all()}
    chosen = [doc_id for doc_id in known if question.documents is None or doc_id in question.documents]
    if filters.exact is not None:
        wanted = filters.exact.casefold()
        named = {
            doc_id: {each.filename.casefold(), each.title.casefold(), each.doc_id, each.file_id, each.source_path}
            for doc_id, each in known.items()
        }
        chosen = [doc_id for doc_id in chosen if wanted in named[doc_id] or filters.exact in named[doc_id]]
    if _by_labels(filters):
        refs = [f"page:{doc_id}#1" for doc_id in chosen]
        fitting = {each.ref for each in resources(reader, refs) if fits(each, filters)}
        chosen = [doc_id for doc_id in chosen if f"page:{doc_id}#1" in fitting]
    return chosen


def _memories(reader: Reader, tenant: str, filters: MetadataFilters) -> Iterator[Candidate]:
    if any(name not in _OF_MEMORIES for name in filters.where):
        return
    for memory in reader.memories.select(tenant, Within(tags=tuple(filters.tags)), now=datetime.now().isoformat()):
        if memory.joined_to or not _in_time(memory.told_at, filters):
            continue
        if filters.exact is not None and filters.exact not in (memory.id, memory.text, memory.key):
            continue
        if all(_holds(getattr(memory, name), value) for name, value in filters.where.items()):
            yield Candidate(memory_item(memory), expires_at=memory.expires_at)


def _item_refs(reader: Reader, kind: str, filters: MetadataFilters) -> Iterator[Any]:
    """The items of a kind that are left, the newest first; of an experience the whole of it."""

    facts = dict(reader.items.metadata(kind)) if filters.where or kind == "experience" else {}
    numbers = []
    for number, created_at in reader.items.times(kind):
        known = facts.get(number, {})
        if kind == "experience" and known.get("axis") != "full":
            continue
        if _in_time(created_at, filters) and all(_holds(known.get(n), v) for n, v in filters.where.items()):
            numbers.append(number)
    for start in range(0, min(len(numbers), _LOOKED_AT), 200):
        part = numbers[start : start + 200]
        items = reader.items.get(part)
        for number in part:
            if number in items and _is_exactly(items[number], filters.exact):
                yield items[number]


def _is_exactly(item: Any, exact: str | None) -> bool:
    if exact is None:
        return True
    facts = item.metadata
    names = {item.key, item.title, item.parent, *(facts.get(name) for name in ("qualified_name", "name", "file_path"))}
    sha = facts.get("sha")
    short = isinstance(sha, str) and len(exact) >= 7 and sha.startswith(exact.lower())
    return exact in names or short


def _labelled(
    reader: Reader, candidates: Iterator[Candidate], filters: MetadataFilters, limit: int, resources: Resources
) -> list[Candidate]:
    """Those of them whose labels fit, as many as are wanted."""
    found: list[Candidate] = []
    while len(found) < limit:
        part = [each for _, each in zip(range(200), candidates, strict=False)]
        if not part:
            break
        if _by_labels(filters):
            fitting = {each.ref for each in resources(reader, [each.ref for each in part]) if fits(each, filters)}
            part = [each for each in part if each.ref in fitting]
        found += part
    return found[:limit]


def _by_labels(filters: MetadataFilters) -> bool:
    return bool(filters.status or filters.module or filters.project)


def fits(resource: Resource, filters: Any) -> bool:
    """Whether its labels are those that are named; a scope has no status."""
    for name in ("status", "module", "project"):
        wanted = getattr(filters, name, None)
        if wanted is not None and getattr(resource, name).casefold() != wanted.casefold():
            return False
    return True


def within_scope(reader: Reader, scope: Scope, refs: Sequence[str], resources: Resources) -> set[str]:
    """Those of these refs that are of the scope's project and module."""
    if scope.project is None and scope.module is None:
        return set(refs)
    return {each.ref for each in resources(reader, refs) if fits(each, scope)}


def documents_within(reader: Reader, scope: Scope, resources: Resources) -> list[str] | None:
    """The documents of the scope's project and module; None: all."""
    if scope.project is None and scope.module is None:
        return None

    first = {f"page:{each.doc_id}#1": each.doc_id for each in reader.documents.all()}
    return [first[ref] for ref in within_scope(reader, scope, list(first), resources)]


def _in_time(text: str, filters: MetadataFilters) -> bool:
    if not (filters.since or filters.until):
        return True
    at = read_time(text)
    since, until = Filters(since=filters.since or "", until=filters.until or "").times()
    return at is not None and since <= at < until


def _holds(value: object, wanted: object) -> bool:
    several = wanted if isinstance(wanted, list) else [wanted]
    return any(type(value) is type(each) and value == each for each in several)


_SEEDS = 10  # of what the search found
_PINNED = 0.5  # what a pinned thing counts to begin with: somebody wants it, whether it fits or not
_NODES = 10  # that are looked at for each that may be brought
_SAID = 0.4  # of the words of an intent, that a neighbour has to have
_UPDATE_SECONDS = 1.0  # for what the graph lacks
# What is left by edges that say little of an intent: that a page stands in the same document, or refers to something.
_QUIET = {"contains": 0.1, "refers": 0.3}


def by_graph(
    index: Index,
    request: ContextBuildRequest,
    tenant: str,
    pinned: Sequence[str],
    found: Sequence[Candidate],
) -> Answer:
    """Bring what is near to what is pinned, and to the best that the search found."""
    limit = request.retrieval.limits.graph
    if limit < 1:
        return Answer(status="off", reason="its limit is 0")
    best = sorted(found, key=lambda each: -each.semantic)[:_SEEDS]
    seeds = dict.fromkeys(pinned, _PINNED) | {each.ref: max(each.semantic, 0.01) for each in best}
    if not seeds:
        return Answer(reason="there is nothing to begin with")
    complete = index.graph.update(seconds=_UPDATE_SECONDS).complete
    hops, most = request.retrieval.limits.hops, min(MOST_NODES, _NODES * limit + len(seeds))
    with index.catalog.snapshot() as reader:  # the gate decides about all candidates at once, later
        near = find_neighbourhood(reader, seeds, hops=hops, limit=most, tenant=tenant)
    known = {each.ref: each for each in found}
    weighted = ((edge.source, edge.target, _QUIET.get(edge.kind, WEIGHTS[edge.kind])) for edge in near.edges)
    nearness = spread(weighted, seeds)
    for ref, worth in _referred(request.intent, near, found).items():
        nearness[ref] = max(worth, nearness.get(ref, 0.0))
    ordered = sorted(nearness, key=lambda ref: (-nearness[ref], ref))
    wanted = [ref for ref in ordered if _wanted(ref, request)]
    brought = [ref for ref in wanted if ref not in known and ref not in seeds][:limit]
    with index.catalog.snapshot() as reader:
        loaded = load(index, reader, brought, tenant)
    candidates = [
        Candidate(known[ref].item, {"graph"}, known[ref].semantic, nearness[ref]) for ref in wanted if ref in known
    ]
    words = analyze_name(request.intent)
    for ref, each in loaded.items():
        if not _speaks_of(words, f"{each.item.title}\n{each.item.text}"):
            continue
        each.origins.add("graph")
        each.graph = nearness[ref]
        candidates.append(each)
    answer = Answer(candidates, projection=uuid.uuid4().hex, told=_told(near, seeds))
    if not complete:
        answer.status, answer.reason = "degraded", "the graph does not hold all of the index yet"
    return answer


def _speaks_of(words: Sequence[str], text: str) -> bool:
    """Whether enough of an intent's words stand in a text: what is only near to something says nothing of it."""
    return len({*words} & {*analyze(text)}) >= _SAID * len({*words})


def _referred(intent: str, near: Neighbourhood, found: Sequence[Candidate]) -> dict[str, float]:
    """ref → what it is worth because one of the best refers to it where it speaks of the intent: its share of the best
    one's score. Pages go by the sums of their legs, as it was measured: a calibrated score falls with the rank."""
    pages = [each for each in found if each.item.ref.kind == "page"]
    others = [each for each in found if each.item.ref.kind != "page"]
    worth: dict[str, float] = {}
    for group, ranked in (
        (pages, [(each.ref, each.item.raw_score) for each in pages]),
        (others, [(each.ref, each.semantic) for each in others]),
    ):
        ranked.sort(key=lambda entry: -entry[1])
        if ranked and ranked[0][1] > 0:
            texts, best = {each.ref: each.item.text for each in group}, max(each.semantic for each in group)
            said = {ref: references_said(intent, texts[ref]) for ref in seeds_of(ranked)}
            joined = neighbour_scores(ranked, near.edges, said)
            worth |= {ref: best * min(1.0, each / ranked[0][1]) for ref, each in joined.items()}
    return worth


def _wanted(ref: str, request: ContextBuildRequest) -> bool:
    """Of a kind that a package may hold, and of the scope; sections and documents are ways, and no things to show."""
    type_of = TYPE_OF_KIND.get(ref.partition(":")[0])
    if request.scope.documents and type_of != "documents":
        return False
    return type_of in request.scope.wanted_types


def _told(near: Neighbourhood, seeds: Mapping[str, float]) -> dict[str, Any]:
    """The projection as it is kept: refs and numbers."""
    nodes = [{"ref": node.ref, "hop": node.hop, "proximity": node.proximity} for node in near.nodes]
    return {"seeds": list(seeds), "nodes": nodes, "edges": [edge.to_dict() for edge in near.edges], "cut": near.cut}
