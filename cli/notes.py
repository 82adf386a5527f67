"""What is said beside an answer: why there is none, what could not be seen, what the budget cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from research.errors import CtxError, NothingFoundError
from research.settings import confidence_value
from research.text import one_line, phrase

if TYPE_CHECKING:
    from research.index import Index
    from research.models import Confidence, Coverage, DroppedSource, PageResult, ResearchContext, SourceDocument
    from research.request import AskRequest

_NAMED = 3  # of the pages left out; JSON has them all
_OTHER_WORDS = "try other words, or see what is there: ctx list"


def check_legs(coverage: Coverage) -> None:
    """Raise if no leg could search at all: that is a failure, not an empty answer."""
    if coverage.legs and all(leg.status == "failed" for leg in coverage.legs):
        reasons = "; ".join(f"{leg.name}: {leg.reason}" for leg in coverage.legs)
        raise CtxError(f"the search failed: {reasons}", hint="check the index with: ctx doctor")


def notes_on(coverage: Coverage) -> list[str]:
    """What the answer could not see, a line each, with what to do about it."""
    failed: dict[str, list[str]] = {}
    for leg in coverage.legs:
        if leg.status == "failed":
            failed.setdefault(leg.reason, []).append(leg.name)
    notes = [
        f"{' and '.join(names)} search failed ({reason}); the results come from the rest; see: ctx doctor"
        for reason, names in failed.items()
    ]
    notes += coverage.notes
    for source in coverage.sources:
        if source.status == "down" and len(coverage.sources) > 1:
            notes.append(f"{source.name} could not be asked ({source.reason}); the others answer")
        elif source.status == "degraded" and source.name != "documents":
            notes.append(source.reason)
    if coverage.pages_without_vectors:
        waiting = f"{coverage.pages_without_vectors} of {coverage.pages} pages are searched by their words only"
        notes.append(f"{waiting}, until they are embedded; finish with: ctx ingest PATH")
    if coverage.pages_without_visual:
        waiting = f"{coverage.pages_without_visual} of {coverage.pages} pages have not been seen by the visual model"
        notes.append(f"{waiting}; finish with: ctx ingest PATH")
    return notes


def answer_notes(context: ResearchContext, shown: Callable[[str], str] = one_line) -> list[tuple[str, str]]:
    """All there is to say beside an answer, each with its kind: follows, documents, coverage, budget. `shown` makes
    names fit to be seen."""
    notes = [("follows", follow_note(context))] if context.follows else []
    if context.answered_by == "documents":
        notes.append(("documents", documents_note(sum(bool(source.page) for source in context.sources))))
    notes += [("coverage", note) for note in notes_on(context.coverage)]
    if context.truncated:
        notes += [("budget", note) for note in _budget_notes(context, shown)]
    return notes


def documents_note(count: int) -> str:
    return f"answered by {count} {'document' if count == 1 else 'documents'}, one page each"


def follow_note(context: ResearchContext) -> str:
    """What a question that leans on the one before it was searched with."""
    # Unchanged, if something else has changed it as well.
    added = context.searched.removeprefix(context.query)
    return f"searched with words of the question before: {phrase(added)}"


def _budget_notes(context: ResearchContext, shown: Callable[[str], str]) -> list[str]:
    notes = []
    cut = [str(number) for number, source in context.get_citation_map().items() if source.cut]
    if cut:
        which = f"source {cut[0]} is" if len(cut) == 1 else f"sources {', '.join(cut[:-1])} and {cut[-1]} are"
        notes.append(f"truncated: {which} shown in part")
    if context.dropped:
        named = context.dropped[:_NAMED]
        names = ", ".join(f"{shown(each.filename)}{f':{each.page}' * bool(each.page)}" for each in named)
        more = f" and {len(context.dropped) - _NAMED} more" if len(context.dropped) > _NAMED else ""
        notes.append(f"truncated: left out: {names}{more}")
    if notes:
        notes[-1] += f" (budget {context.max_tokens} tokens; raise it with --max-tokens)"
    return notes


def nothing_found(
    index: Index,
    request: AskRequest,
    confidence: Confidence | None,
    best: SourceDocument | DroppedSource | PageResult | None,
) -> NothingFoundError | None:
    """Why there is no answer; None if there may be one. `best` is the first of the pages that were found and wanted."""
    if confidence is None or confidence.value == 0:  # not a page was found
        more = "try other words, or see: ctx list"
        return None if best else NothingFoundError("nothing found for this question", hint=index.access.problem or more)
    if best is None:
        return _left_out(index, request, confidence)
    if confidence.level != "none":
        return None
    filtered = bool(request.filters)
    if request.types is not None:
        where = "what was asked"
    elif filtered:
        where = "what the filters leave"
    else:
        documents = index.documents.list()
        where = f"{_count(sum(info.num_pages for info in documents), 'page')} of {_count(len(documents), 'document')}"
    page = f"{one_line(best.filename)}{f' p. {best.page}' * bool(best.page)} (score {best.relevance_score:.2f})"
    hint = f"{_OTHER_WORDS}; or ask without the filters" if filtered else _OTHER_WORDS
    return NothingFoundError(f"nothing in {where} seems to answer this; nearest: {page}", hint=hint)


def _left_out(index: Index, request: AskRequest, confidence: Confidence) -> NothingFoundError:
    """Nothing was as good as it had to be."""
    least = index.settings.min_confidence if request.min_confidence is None else str(request.min_confidence)
    if confidence.value < confidence_value(least):
        sure = f"confidence is {confidence.level} ({confidence.value:.2f}), and at least {least} is wanted"
        return NothingFoundError(f"nothing sure enough was found: {sure}", hint="lower --min-confidence")
    score = index.settings.min_score if request.min_score is None else request.min_score
    return NothingFoundError(f"no page that was found has a score of {score:g} or more", hint="lower min_score")


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def end(nothing: NothingFoundError | None, *, told: bool = False) -> int:
    """The exit code; on stderr why, unless the answer on the screen has `told` it."""
    if nothing is None:
        return 0
    if not told:
        from cli.output import complain

        complain(nothing, as_json=False)
    return nothing.exit_code
