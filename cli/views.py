"""Renderings of pages and scores that several commands share.

What is said beside an answer: what the budget cost, and what could not be seen.

What is said where nothing found seems to answer the question: what was looked at, what was nearest, what to try.

Labels of things as `ctx classify` and `ctx label` print them.

What context and premortem share: their options, and how a context of several sources is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cli.options import notes_on
from research.errors import NothingFoundError
from research.models import LegScore, Rewrite
from research.settings import confidence_value
from research.text import one_line, phrase

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rich.table import Table
    from rich.text import Text

    from cli.options import Common
    from research.governance import Label, Labels, Resource
    from research.index import Index
    from research.models import Confidence, DroppedSource, PageResult, ResearchContext, SourceDocument
    from research.request import AskRequest
    from research.sources import FormattedContext

    Found = SourceDocument | DroppedSource | PageResult


@dataclass(frozen=True, slots=True)
class Scored:
    """A numbered page and how each leg saw it."""

    number: int
    filename: str
    page: int
    page_label: str
    section: str
    score: float
    legs: Mapping[str, LegScore]


def page_name(page: int, label: str) -> str:
    """The physical page, and the printed one where it is another."""
    return f"{page} ({one_line(label)})" if label and label != str(page) else str(page)


def documents_note(count: int) -> str:
    """What a reader is told of an answer by documents."""
    return f"answered by {count} {'document' if count == 1 else 'documents'}, one page each"


def plain(text: str, style: str = "") -> Text:
    """Text as it is, styled as a whole."""
    from rich.text import Text

    return Text(text, style=style)


def explain_table(pages: Iterable[Scored]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="How the scores arose", title_justify="left")
    for name in ("#", "leg", "rank", "score", "parts"):
        table.add_column(name, justify="right" if name in {"#", "rank", "score"} else "left")
    for found in pages:
        for name, leg in found.legs.items():
            rank = "–" if leg.rank is None else str(leg.rank)
            table.add_row(str(found.number), name, rank, f"{leg.score:.3f}", plain(_parts(leg)))
    return table


def explain_lines(pages: Iterable[Scored]) -> Iterator[str]:
    """The same for stderr, a line a page and leg."""
    for found in pages:
        for name, leg in found.legs.items():
            rank = "-" if leg.rank is None else str(leg.rank)
            place = f"{one_line(found.filename)}:{found.page}" if found.page else one_line(found.filename)
            yield (
                f"[{found.number}] {place} score {found.score:.3f}"
                f" {name} rank {rank} score {leg.score:.3f} {_parts(leg)}".rstrip()
            )


def rewrite_lines(searched: str, rewrites: Iterable[Rewrite]) -> Iterator[str]:
    """What was searched, and what each rewriter did to the question."""
    yield f"searched: {phrase(searched)}"
    for rewrite in rewrites:
        yield f"rewritten by {rewrite.name}: {phrase(rewrite.why)}"
        if rewrite.documents:
            yield f"  ranked inside {len(rewrite.documents)} of the documents by: {phrase(rewrite.after)}"


def _parts(leg: LegScore) -> str:
    return "  ".join(f"{name} {value:.3f}" for name, value in leg.parts.items())


# Of the pages left out, a reader is told the first; JSON has them all.
_NAMED = 3
_NAME = 24  # cells of a name on the screen


@dataclass(frozen=True, slots=True)
class Note:
    text: str
    style: str


def screen_notes(context: ResearchContext) -> list[Note]:
    """All there is to say, for a reader who sees the answer drawn; a long name must not hide what is said of it."""
    from cli.layout import shorten_middle

    def short(name: str) -> str:
        return shorten_middle(one_line(name), _NAME)

    return [
        *([Note(f"↪ {follow_note(context)}", "dim")] if context.follows else []),
        *(Note(f"✂ {note}", "bold yellow") for note in budget_notes(context, short)),
        *(Note(f"! {note}", "yellow") for note in notes_on(context.coverage)),
    ]


def follow_note(context: ResearchContext) -> str:
    """Of a question that leans on the one before it."""
    added = context.searched.removeprefix(context.query)
    if added == context.searched:  # something else has changed it as well
        return f"searched with words of the question before: {phrase(context.searched)}"
    return f"searched with words of the question before: {phrase(added)}"


def budget_notes(context: ResearchContext, shown: Callable[[str], str] = one_line) -> list[str]:
    """What the budget cost."""
    notes = []
    cut = [str(number) for number, source in context.get_citation_map().items() if source.cut and context.truncated]
    if cut:
        which = f"source {cut[0]} is" if len(cut) == 1 else f"sources {', '.join(cut[:-1])} and {cut[-1]} are"
        notes.append(f"truncated: {which} shown in part")
    if context.dropped:
        names = ", ".join(_place(shown(d.filename), d.page) for d in context.dropped[:_NAMED])
        more = f" and {len(context.dropped) - _NAMED} more" if len(context.dropped) > _NAMED else ""
        notes.append(f"truncated: left out: {names}{more}")
    if notes:
        notes[-1] += f" (budget {context.max_tokens} tokens; raise it with --max-tokens)"
    return notes


def _place(name: str, page: int) -> str:
    return f"{name}:{page}" if page else name  # what is no page has none


_NOTHING = "nothing found for this question"
_MORE = "try other words, --mode hybrid, or see: ctx list"
_OTHER_WORDS = "try other words, or see what is there: ctx list"


def nearest(context: ResearchContext) -> SourceDocument | DroppedSource | None:
    """The first page that was found, whether it fits the budget or not."""
    return context.sources[0] if context.sources else context.dropped[0] if context.dropped else None


def nothing_found(
    index: Index, request: AskRequest, confidence: Confidence | None, best: Found | None
) -> NothingFoundError | None:
    """Why there is no answer; None if there may be one. `best` is the first of the pages that were found and wanted."""
    if confidence is None or confidence.value == 0:  # not a page was found
        return None if best else NothingFoundError(_NOTHING, hint=index.access.problem or _MORE)
    if best is None:
        return _left_out(index, request, confidence)
    if confidence.level != "none":
        return None
    from research.text import one_line

    filtered = bool(request.filters)
    where = "what was asked" if request.types is not None else "what the filters leave" if filtered else _all_of(index)
    page = f"{one_line(best.filename)}{f' p. {best.page}' * bool(best.page)} (score {best.relevance_score:.2f})"
    hint = f"{_OTHER_WORDS}; or ask without the filters" if filtered else _OTHER_WORDS
    return NothingFoundError(f"nothing in {where} seems to answer this; nearest: {page}", hint=hint)


def end(nothing: NothingFoundError | None, *, told: bool = False) -> int:
    """The exit code; on stderr why, unless the answer on the screen has `told` it."""
    if nothing is None:
        return 0
    if not told:
        from cli.output import complain

        complain(nothing, as_json=False)
    return nothing.exit_code


def _left_out(index: Index, request: AskRequest, confidence: Confidence) -> NothingFoundError:
    """Nothing was as good as it had to be."""
    least = index.settings.min_confidence if request.min_confidence is None else str(request.min_confidence)
    if confidence.value < confidence_value(least):
        sure = f"confidence is {confidence.level} ({confidence.value:.2f}), and at least {least} is wanted"
        return NothingFoundError(f"nothing sure enough was found: {sure}", hint="lower --min-confidence")
    score = index.settings.min_score if request.min_score is None else request.min_score
    return NothingFoundError(f"no page that was found has a score of {score:g} or more", hint="lower --min-score")


def _all_of(index: Index) -> str:
    documents = index.documents.list()
    pages = sum(info.num_pages for info in documents)
    return f"{_counted(pages, 'page')} of {_counted(len(documents), 'document')}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


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


def show_context(kind: str, asked: dict[str, object], found: FormattedContext, given: Common) -> int:
    """The context on stdout, what there is to say about it on stderr; the exit code."""
    from cli.output import on_terminal, write, write_document
    from research.text import block

    if found.failed:
        raise _failure(found)
    if given.as_json:
        write_document(f"ctx.{kind}/1", {**asked, **found.to_dict()})
    elif found.markdown:
        write(f"{block(found.markdown) if on_terminal() else found.markdown}\n")
    if not given.quiet:
        _tell(found)
    return _end(kind, found)


def _tell(found: FormattedContext) -> None:
    from cli.output import say
    from research.text import one_line

    for source in found.coverage.sources:
        if source.status == "down":
            say(f"ctx: note: {source.name} could not be asked ({one_line(source.reason)}); the others answer")
    for note in found.coverage.notes:
        say(f"ctx: note: {one_line(note)}")


def _end(kind: str, found: FormattedContext) -> int:
    from research.errors import NothingFoundError

    if found.items:
        return 0
    if found.left_out:
        more = sum(found.left_out.values())
        return end(
            NothingFoundError(f"none of {more} items fits into {found.max_tokens} tokens", hint="raise --max-tokens")
        )
    hints = {"premortem": "tell what is tried, and what comes of it, with: ctx experience start"}
    return end(NothingFoundError("nothing found", hint=hints.get(kind, "see what there is with: ctx status")))


def _failure(found: FormattedContext) -> Exception:
    from research.errors import CtxError

    reasons = "; ".join(f"{each.name}: {each.reason}" for each in found.coverage.sources)
    return CtxError(f"no source could be asked: {reasons}", hint="check the index with: ctx doctor")
