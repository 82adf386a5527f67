"""Documents as a source: pages, found by the engine, with scores that mean something."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from research.context import stored_signals
from research.errors import EncoderNotAllowed, EncoderUnavailable
from research.models import SUPERSEDED, VISUAL_MATCH, Item, Passage, Question, Ref, Retrieved, SourceCoverage, labelled
from research.observe import NULL_RECORDER
from research.search import (
    DEFAULT_WEIGHTS,
    CollectionBooster,
    DenseLeg,
    DocumentPartsBooster,
    Engine,
    Evidence,
    Found,
    Highlighter,
    LexicalLeg,
    NewestFirst,
    PageReferencesBooster,
    Rewriters,
    RowOrder,
    SearchOutcome,
    VisualLeg,
    calibrate,
)

if TYPE_CHECKING:
    from research.encoders import QuestionEncoder
    from research.observe import Recorder
    from research.search import PageOrder
    from research.settings import Settings
    from research.store import Reader, StoredPage, VectorIndex
    from research.units import Structure

MODES = {
    "hybrid": ("lexical", "dense", "visual"),
    "text": ("lexical", "dense"),
    "visual": ("visual",),
    "lexical": ("lexical",),
    "dense": ("dense",),
}
"""Which legs answer in a mode."""

_BOOSTERS = (PageReferencesBooster(), DocumentPartsBooster(), CollectionBooster())


class DocumentsSource:
    """The legs, rewriters and boosters of documents, wired to one index."""

    name = "documents"

    def __init__(
        self,
        vectors: VectorIndex,
        settings: Settings,
        encoder: QuestionEncoder,
        recorder: Recorder = NULL_RECORDER,
    ) -> None:
        named = settings.named_encoders
        self._encoder = encoder
        dense = DenseLeg(vectors, self._encoder)
        self._visual = VisualLeg(dense, self._encoder, vectors, settings.device, named)
        self._highlighter = Highlighter(self._encoder, self._visual)
        self.engine = Engine(
            [LexicalLeg(), dense, self._visual],
            modes=MODES,
            weights=DEFAULT_WEIGHTS,
            rewriters=Rewriters(settings.rewriters, settings.vocabulary),
            boosters=[booster for booster in _BOOSTERS if booster.name in settings.boosters],
            order=RowOrder(self._highlighter),
            reranker=self._reranker(settings),
            last=NewestFirst() if NewestFirst.name in settings.boosters else None,
            recorder=recorder,
        )

    def retrieve(self, reader: Reader, question: Question, limit: int) -> Retrieved:
        outcome = self.engine.run(reader, question, limit)
        evidence = [
            Evidence(found.score, found.legs["dense"].score if "dense" in found.legs else None)
            for found in outcome.found
        ]
        alone = question.mode if question.mode in ("dense", "visual") else ""  # which have a curve to themselves
        scores = calibrate(self.name, evidence, reader.pages.totals().pages, alone=alone)
        return Retrieved(
            labelled(
                [_found_item(found, score, limit) for found, score in zip(outcome.found, scores, strict=True)],
                reader.masks.labels,
            ),
            _status(outcome),
            outcome.coverage,
            outcome.timings,
            outcome.searched,
            outcome.rewrites,
            outcome.answered_by,
        )

    def with_passages(
        self, reader: Reader, question: Question, items: Sequence[Item], *, look: bool = False
    ) -> list[Item]:
        """The items with their passages, each under its headings, and to the end of a sentence that runs on. `look`:
        also where a visual model sees the answer. What fails costs itself alone, and a note tells."""
        from research.context import join_page_breaks
        from research.search import opened

        page_ids = reader.pages.ids_at([f"{item.ref.key}:{item.ref.part}" for item in items])
        found = list(items)
        with _failing_alone(question):
            found = self._highlighter.passages(reader, question, found, page_ids)
        with _failing_alone(question):
            found = [opened(item) for item in join_page_breaks(reader, found)]
        if look:
            with _failing_alone(question):
                found = self._highlighter.places(reader, question, found, page_ids)
        return found

    def places(self, reader: Reader, question: Question, item: Item) -> tuple[list[Passage], str]:
        """Where on one page the answer seems to stand, and why a visual model could not say, if so."""
        [page_id] = reader.pages.ids_at([f"{item.ref.key}:{item.ref.part}"])
        return self._highlighter.closely(reader, question, item, page_id)

    def _reranker(self, settings: Settings) -> PageOrder | None:
        if settings.reranker in ("", "off"):
            return None
        from research.search import PageReranker

        return PageReranker(settings.reranker, self._highlighter, settings.request_timeout)


@contextmanager
def _failing_alone(question: Question) -> Iterator[None]:
    """What is done inside may fail: a damaged chunk, a model that will not load. The answer stands; a note tells."""
    try:
        yield
    except (EncoderNotAllowed, EncoderUnavailable):
        pass  # coverage says so already: its leg failed for the same reason
    except Exception as error:  # noqa: BLE001
        question.notes.append(f"the places on the pages could not be found: {type(error).__name__}: {error}")
        from research.observe import log_failure

        log_failure("search", "the places on the pages could not be found", error)


def page_item(page: StoredPage, structure: Structure) -> Item:
    """A page as an item that nobody has asked for yet."""
    text = structure.text
    signals = stored_signals(structure.signals, text, filename=page.filename, title=page.title)
    return Item(
        ref=Ref("page", page.doc_id, str(page.page)),
        title=page.title,
        text=text,
        score=0.0,
        created_at=page.timestamp,
        metadata=page.metadata() | {"file_id": page.file_id},
        signals=tuple(signals),
        structure=structure,
    )


def _found_item(found: Found, score: float, limit: int) -> Item:
    rank = found.legs["visual"].rank if "visual" in found.legs else None
    return replace(
        page_item(found.page, found.text),
        score=score,
        raw_score=found.score,
        legs=found.legs,
        part=found.part,
        labels=((VISUAL_MATCH,) if rank is not None and rank <= limit else ())
        + ((SUPERSEDED,) if NewestFirst.name in found.legs else ()),
    )


def _status(outcome: SearchOutcome) -> SourceCoverage:
    failed = [leg for leg in outcome.coverage.legs if leg.status == "failed"]
    if not failed:
        return SourceCoverage("documents", "ok")
    reason = "; ".join(f"{leg.name}: {leg.reason}" for leg in failed)
    sound = any(leg.status == "ok" for leg in outcome.coverage.legs)
    return SourceCoverage("documents", "degraded" if sound else "down", reason)
