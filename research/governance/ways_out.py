"""The ways out of an index under a gate: pages, lists, memories, experiences, and what a model elsewhere is sent.

Whatever `Index` gives passes here, unless it acts for its owner and there is no policy. What is denied is as if it were
not there: a name that means only denied things means nothing, and no message tells the two apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from research.errors import NothingFoundError
from research.governance.gate import Gate, is_withheld
from research.governance.told_records import ToldRecords
from research.store.catalog.edges import section_pages

if TYPE_CHECKING:
    from research.governance.access import MemoryAccessDecision, Ruling
    from research.graph.neighbourhood import Neighbourhood, Node, ShownGraph, ShownNode
    from research.models import DocumentOutline, Item, PageView, Question, ResearchContext, Rewrite, SourceDocument
    from research.records import DocumentInfo
    from research.search.items import FoundItem
    from research.search.legs import Found, SearchOutcome
    from research.sources.base import Retrieved, Source
    from research.sources.items import ItemsSource
    from research.store.catalog.reader import Reader

T = TypeVar("T")

_MOST_ROUNDS = 3  # of looking further down the ranking, four times as far each, where much is denied
_HARMLESS = frozenset({"answer-form", "finance"})  # rewriters whose words are none of a document's
WITHHELD = "withheld"


def not_there(name: str) -> NothingFoundError:
    """The same for what there is not and for what may not be read."""
    return NothingFoundError(
        f"there is no {name!r} that may be read here", hint="see what may be with: ctx list; or ask whoever keeps it"
    )


class WaysOut(ToldRecords):
    """May be used by many threads."""

    def source(self, source: Source, purpose: str) -> GovernedSource:
        return GovernedSource(source, self.gate, purpose)

    def with_passages(
        self, finder: Callable[[Sequence[Item]], list[Item]], reader: Reader, items: Sequence[Item]
    ) -> list[Item]:
        """As `finder` has them, for those whose text is the stored one. A sentence that runs on to a page that may not
        be read as it is ends with its own page."""
        plain = [item for item in items if not is_withheld(item)]
        found = finder(plain)
        following = {_page_ref(item, page) for item in found for passage in item.passages for page in passage.pages}
        following -= {str(item.ref) for item in found}
        readable = (
            {ruling.ref for ruling in self.gate.decide(reader, sorted(following)).rulings if ruling.effect == "allow"}
            if following
            else set()
        )
        done = {id(before): _ending_here(after, readable) for before, after in zip(plain, found, strict=True)}
        return [done.get(id(item), item) for item in items]

    def documents(self, reader: Reader, documents: Sequence[DocumentInfo], purpose: str) -> list[DocumentInfo]:
        """Those that may be known of; title and names of a redacted one are masked."""
        ruled = self.rulings(reader, [f"document:{info.doc_id}" for info in documents], purpose)
        found = []
        for info in documents:
            ruling = ruled[f"document:{info.doc_id}"]
            if ruling.effect == "allow":
                found.append(info)
            elif ruling.effect == "redact":
                title, filename, path = self._names(ruling, info.title, info.filename, info.source_path)
                found.append(replace(info, title=title, filename=filename, source_path=path))
        return found

    def is_whole(self, reader: Reader, info: DocumentInfo, purpose: str) -> bool:
        """Whether all of a document may be read as it is: its file shows everything."""
        refs = [f"document:{info.doc_id}", *(f"page:{info.doc_id}#{page}" for page in range(1, info.num_pages + 1))]
        return all(ruling.effect == "allow" for ruling in self.rulings(reader, refs, purpose).values())

    def is_plain(self, reader: Reader, info: DocumentInfo, page: int) -> bool:
        """Whether a page may be read as it is: its picture shows everything. One that there is not is none to hide."""
        ref = f"page:{info.doc_id}#{page}"
        return not 0 < page <= info.num_pages or self.rulings(reader, [ref], "picture")[ref].effect == "allow"

    def view(self, reader: Reader, view: PageView, purpose: str) -> PageView | None:
        """A page as it may be shown; None: not at all."""
        governed = self.gate.govern(reader, [view.item], purpose=purpose).items
        return replace(view, item=governed[0]) if governed else None

    def outline(self, reader: Reader, outline: DocumentOutline, purpose: str) -> DocumentOutline:
        """Headings and beginnings of pages that may be read as they are; of redacted ones masked, if anything is."""
        info = outline.document
        numbers = sorted({entry.page for entry in outline.entries} | {page.page for page in outline.pages})
        ruled = self.rulings(reader, [f"page:{info.doc_id}#{page}" for page in numbers], purpose)

        def shown(page: int, text: str) -> str | None:
            safe = self.gate.redact_text(ruled[f"page:{info.doc_id}#{page}"], text)
            return safe[0] if safe else None

        entries = [(entry, shown(entry.page, entry.title)) for entry in outline.entries]
        pages = [(page, shown(page.page, page.text)) for page in outline.pages]
        return replace(
            outline,
            entries=[replace(entry, title=title) for entry, title in entries if title is not None],
            pages=[replace(page, text=text) for page, text in pages if text is not None],
        )

    def found_items(self, reader: Reader, source: ItemsSource, found: Sequence[FoundItem]) -> list[FoundItem]:
        """Code and commits as their source found them; of a redacted one only what was made safe is left."""
        items = {str(source.ref(each)): source.item(each) for each in found}
        seen = {str(item.ref): item for item in self.gate.govern(reader, list(items.values()), purpose="context").items}

        def shown(each: FoundItem, item: Item) -> FoundItem:
            if not is_withheld(item):
                return each
            stored = replace(each.item, title=item.title, text=item.text, metadata=dict(item.metadata))
            return replace(each, item=stored)

        refs = {id(each): str(source.ref(each)) for each in found}
        return [shown(each, seen[refs[id(each)]]) for each in found if refs[id(each)] in seen]

    def outcome(self, reader: Reader, outcome: SearchOutcome) -> SearchOutcome:
        """A ranking without pages that may not be read as they are."""
        every = [*outcome.found, *outcome.candidates]
        ruled = self.rulings(reader, [f"page:{each.page.doc_id}#{each.page.page}" for each in every], "rank")

        def seen(found: Sequence[Found]) -> list[Found]:
            allowed = (each for each in found if ruled[f"page:{each.page.doc_id}#{each.page.page}"].effect == "allow")
            # The headings may stand on other pages.
            return [replace(each, page=replace(each.page, section_path="", parent_heading="")) for each in allowed]

        return replace(outcome, found=seen(outcome.found), candidates=seen(outcome.candidates))

    def markdown(self, reader: Reader, views: Sequence[PageView]) -> list[tuple[int, str]]:
        """The pages of a document that may be shown, as they may be."""
        items = self.gate.govern(reader, [view.item for view in views], purpose="markdown").items
        return [(int(item.ref.part), item.text) for item in items]

    def neighbours(self, reader: Reader, found: Neighbourhood) -> Neighbourhood:
        """Without nodes that may not be known of, and what leads to them."""
        ruled = self.rulings(reader, [node.ref for node in found.nodes], "graph")
        nodes = [node for node in found.nodes if ruled[node.ref].effect != "deny"]
        plain = self._headed(reader, ruled, nodes)
        nodes = [node if node.ref in plain else replace(node, name="") for node in nodes]
        kept = {node.ref for node in nodes}
        edges = [edge for edge in found.edges if edge.source in kept and edge.target in kept]
        return replace(found, nodes=nodes, edges=edges)

    def graph(self, reader: Reader, shown: ShownGraph) -> ShownGraph:
        """A graph of such a neighbourhood, without the titles of what may only be read redacted."""
        ruled = self.rulings(reader, [node.ref for node in shown.nodes], "graph")
        plain = self._headed(reader, ruled, shown.nodes)

        def named(node: ShownNode) -> ShownNode:
            if node.ref in plain:
                return node
            [file] = (node.file,) if ruled[node.ref].effect == "allow" else self._names(ruled[node.ref], node.file)
            return replace(node, title="", file=file)

        return replace(shown, nodes=[named(node) for node in shown.nodes])

    def _headed(self, reader: Reader, ruled: Mapping[str, Ruling], nodes: Sequence[Node | ShownNode]) -> set[str]:
        """The refs of nodes whose name may be read as it is. That of a section stands on a page."""
        allowed = {node.ref for node in nodes if ruled[node.ref].effect == "allow"}
        pages = section_pages(reader, (ref for ref in allowed if ref.startswith("section:")))
        decided = self.gate.decide(reader, list(dict.fromkeys(pages.values()))).rulings if pages else ()
        readable = {ruling.ref for ruling in decided if ruling.effect == "allow"}
        return {ref for ref in allowed if not ref.startswith("section:") or pages.get(ref) in readable}

    def not_there(self, name: str) -> NothingFoundError:
        return not_there(name)

    def sendable(self, reader: Reader, refs: Sequence[str]) -> set[str]:
        """Those whose text may go to a model that runs elsewhere: they may be read as they are, and sent."""
        sent = self.rulings(reader, refs, "send", action="send")
        return {ref for ref, ruling in sent.items() if ruling.effect == "allow"}

    def told(self, text: str, searched: str, rewrites: Sequence[Rewrite]) -> tuple[str, list[Rewrite]]:
        """What may be told of how a question was searched: no words that a rewriter took from documents, for they may
        be those of one that may not be read."""
        harmless = [rewrite for rewrite in rewrites if rewrite.name in _HARMLESS]
        return (searched, harmless) if len(harmless) == len(rewrites) else (text, harmless)


class GovernedSource:
    """A source of which nothing is seen that its gate does not let through. Where much is denied, it looks further down
    the ranking, so that what may be seen is found all the same."""

    def __init__(self, source: Source, gate: Gate, purpose: str) -> None:
        self._source = source
        self._gate = gate
        self._purpose = purpose

    @property
    def name(self) -> str:
        return self._source.name

    def retrieve(self, reader: Reader, question: Question, limit: int) -> Retrieved:
        wanted = limit
        for _ in range(_MOST_ROUNDS):
            found = self._source.retrieve(reader, question, wanted)
            decision = self._gate.decide(reader, [str(item.ref) for item in found.items])
            enough = _until(decision, limit)
            if enough is not None or len(found.items) < wanted or decision.problem:
                break
            wanted *= 4
        looked_at = found.items if enough is None else found.items[:enough]
        governed = self._gate.govern(reader, looked_at, purpose=self._purpose)
        if governed.decision.problem:
            question.notes.append(f"nothing is released: {governed.decision.problem}")
        if governed.redacted:
            question.notes.append(f"{self.name}: some are masked or come without their text, as the policy says")
        return replace(found, items=governed.items[:limit])


def _until(decision: MemoryAccessDecision, limit: int) -> int | None:
    """How many have to be looked at until so many may be seen; None: all of them are too few."""
    seen = 0
    for number, ruling in enumerate(decision.rulings, start=1):
        seen += ruling.effect != "deny"
        if seen == limit:
            return number
    return None


def without_unsendable(context: ResearchContext, permitted: Collection[str]) -> ResearchContext:
    """What a model elsewhere may be sent: sources that it may not get keep their number and say nothing."""
    if all(source.ref in permitted for source in context.sources):
        return context
    return replace(
        context, sources=[source if source.ref in permitted else _withheld(source) for source in context.sources]
    )


def _withheld(source: SourceDocument) -> SourceDocument:
    return replace(
        source,
        doc_id="",
        filename=WITHHELD,
        title="",
        markdown_content="",
        source_path="",
        link="",
        ref="",
        file_id="",
        section_path=None,
        parent_heading=None,
        thumbnail_path=None,
        image_path=None,
        passages=[],
        regions=[],
    )


def _page_ref(item: Item, page: int) -> str:
    return f"page:{item.ref.key}#{page}"


def _ending_here(item: Item, readable: Collection[str]) -> Item:
    """With passages of its own page alone, where one runs on to a page that is not readable."""
    own = int(item.ref.part) if item.ref.kind == "page" else 0
    if all(page == own or _page_ref(item, page) in readable for passage in item.passages for page in passage.pages):
        return item
    passages = tuple(
        replace(passage, text=item.text[passage.start : passage.end], pages=()) if len(passage.pages) > 1 else passage
        for passage in item.passages
    )
    return replace(item, passages=passages, pages=())
