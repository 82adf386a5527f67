"""What is said where nothing found seems to answer the question: what was looked at, what was nearest, what to try."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.errors import NothingFoundError
from research.settings import confidence_value

if TYPE_CHECKING:
    from research.index import Index
    from research.models import Confidence, DroppedSource, PageResult, ResearchContext, SourceDocument
    from research.request import AskRequest

    Found = SourceDocument | DroppedSource | PageResult

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
    from research.visible_text import one_line

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
    documents = index.documents()
    pages = sum(info.num_pages for info in documents)
    return f"{_counted(pages, 'page')} of {_counted(len(documents), 'document')}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
