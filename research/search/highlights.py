"""Where on a page the answer seems to stand: the pieces that match the question best, with their boxes.

Apart from the search, and asked for by who shows it: it costs a look at every page, and can fail alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from research.errors import CtxError
from research.models import Item, LegScore, Passage, Question
from research.records import Box, area, rounded, touches, union, unpack_boxes
from research.search.legs import Chosen, Ranked, Reranked, pages_with_text, terms_of
from research.search.names import naming as named_documents
from research.search.passages import PageEvidence, Piece, WantedWords
from research.search.rewriters import row_names
from research.search.vector_legs import VisualLeg, lines_match_encoder
from research.store import SIGNS, analyze, cosines
from research.text import UNSPACED
from research.units import Structure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders import QuestionEncoder, TextEncoder
    from research.store import Reader

_MOST = 3  # boxes a page: more would be the whole of it
_AS_GOOD = 0.8  # of the best place's score, for a second one to be marked on a picture
_PATCHES = 12  # of a visual model's patches, the best ones
_TOUCHING = 0.005  # of the page: patches no further apart are one
_DIGITS = 4  # of a box that is shown
_ORDERED = 10  # pages that are looked at for rows, however few are shown
_CALLED = 0.5  # how well a row's label is what the question asks for, at least
_ROW = 0.05  # of the sum of the legs, for such a row; .03 to .07 are alike (RETRIEVAL.md)


_Page = tuple[int, str, str, Structure]  # page_id, doc_id, the headings in force where it begins, its text


@dataclass(frozen=True, slots=True)
class _Seen:
    passages: tuple[Passage, ...]  # best first
    is_row: bool  # the best one is a row that is called what the question asks for


class Highlighter:
    """Finds the passages of pages, and the places on them, by whichever side of the index sees them."""

    def __init__(self, encoder: QuestionEncoder, visual: VisualLeg) -> None:
        self._encoder = encoder
        self._visual = visual

    def passages(
        self, reader: Reader, question: Question, items: Sequence[Item], page_ids: Sequence[int]
    ) -> list[Item]:
        """The items with their best passages, best first. Without an encoder, or where the search needs none, passages
        are found by words alone."""
        seen = self.look_at(reader, question, _pages(items, page_ids))
        return [replace(item, passages=seen[page_id].passages) for item, page_id in zip(items, page_ids, strict=True)]

    def look_at(
        self, reader: Reader, question: Question, pages: Sequence[_Page], *, closely: bool = False
    ) -> Mapping[int, _Seen]:
        """page_id → its passages. `closely`: each unit is embedded itself. Else what a question has seen of a page when
        it was ranked is not looked for again."""
        known: dict[int, _Seen] = {} if closely else question.memo.get("passages", dict)
        new = [page for page in pages if page[0] not in known]
        if not new:
            return known
        asked: NDArray[np.float32] | None = None
        if question.mode != "lexical":  # what loads no encoder to search needs none for its passages
            with suppress(CtxError):  # its leg has told why
                asked = self._encoder.vector(reader, question)
        page_ids = [page_id for page_id, *_ in new]
        chunks = reader.chunks.nearest(page_ids, asked) if asked is not None else {}
        lines = _lines(reader, page_ids, asked) if asked is not None else {}
        naming = named_documents(question, reader)
        weights = {term.word: term.idf for term in terms_of(reader, question).terms}
        rows = row_names(question.wording)
        wanted = WantedWords(question.wording, weights, rows)
        # Inside the document that a question names, its name tells no sentence from another.
        inside = WantedWords(question.wording, weights, rows, naming.words) if naming.words else wanted
        for page_id, doc_id, section, text in new:
            is_named = doc_id in naming.documents
            words = inside if is_named else wanted
            page = PageEvidence(text.text, text.units, words, chunks.get(page_id, ()), lines.get(page_id, ()))
            if asked is not None and closely:
                page.refine(_cosines(self._encoder.encoder(reader), page.texts(), asked))
            passages = page.passages(section)
            if naming.documents and not is_named:  # it is not the one that was asked about
                passages = tuple(replace(each, score=round(each.score / 2, 4)) for each in passages)
            is_row = bool(passages) and page.label_of(passages[0]) > _CALLED
            known[page_id] = _Seen(passages, is_row and (is_named or not naming.documents))
        return known

    def places(self, reader: Reader, question: Question, items: Sequence[Item], page_ids: Sequence[int]) -> list[Item]:
        """The items with the places that a visual model answers the question by, in place of those the text has. As
        they are, where no model has filled the index."""
        if reader.visual.side().kind != "model":
            return list(items)
        from research.encoders import unpack

        asked = self._visual.model().vectors_of(reader, question)
        found: dict[int, list[Passage]] = {page_id: [] for page_id in page_ids}
        for page_id, packed, boxes in reader.visual.seen(page_ids):
            if len(asked):  # for every vector of the question the patch that answers it best
                found[page_id] = _best_patches(asked @ unpack(packed).T, unpack_boxes(boxes))
        return [
            replace(item, passages=(*(replace(each, box=None) for each in item.passages), *found[page_id]))
            for item, page_id in zip(items, page_ids, strict=True)
        ]

    def closely(self, reader: Reader, question: Question, item: Item, page_id: int) -> tuple[list[Passage], str]:
        """The places on one page, each of its units embedded, and why a visual model could not say, if so."""
        problem = ""
        try:
            if seen := self.places(reader, question, [item], [page_id])[0].passages:
                return list(seen), ""
        except CtxError as error:
            problem = error.message
        found = self.look_at(reader, question, _pages([item], [page_id]), closely=True)[page_id].passages
        return [each for each in found if each.score >= _AS_GOOD * found[0].score], problem


def _pages(items: Sequence[Item], page_ids: Sequence[int]) -> list[_Page]:
    return [
        (page_id, item.ref.key, str(item.metadata.get("section_path", "")), item.stored)
        for item, page_id in zip(items, page_ids, strict=True)
    ]


class RowOrder:
    """Lifts pages a little whose best passage is a row of a table that is called what the question asks for: the words
    of a whole page cannot tell. Each place keeps its score, for that says how likely the page in this place answers."""

    name = "rows"

    def __init__(self, highlighter: Highlighter) -> None:
        self._highlighter = highlighter

    def rerank(self, reader: Reader, question: Question, ranked: Sequence[Ranked], chosen: Chosen) -> Reranked:
        """The pages in their new order; those that a booster moved stay in their places."""
        places = [place for place, page in enumerate(ranked[:_ORDERED]) if page.page_id not in chosen.boosted]
        page_ids = [ranked[place].page_id for place in places]
        stored = pages_with_text(reader, question, page_ids)
        pages = [(page_id, known.doc_id, known.section_path, text) for page_id, (known, text) in stored.items()]
        seen = self._highlighter.look_at(reader, question, pages)
        lifted = {page_id: _ROW for page_id, one in seen.items() if one.is_row}
        best = sorted(places, key=lambda at: -round(ranked[at].score + lifted.get(ranked[at].page_id, 0.0), 6))
        ordered = list(ranked)
        for place, other in zip(places, best, strict=True):
            ordered[place] = ranked[other]._replace(score=ranked[place].score)
        return Reranked(ordered, {page_id: LegScore(None, lift) for page_id, lift in lifted.items()})


def _cosines(encoder: TextEncoder, texts: Sequence[str], asked: NDArray[np.float32]) -> list[float]:
    # A token has a character at least, so most texts need no counting.
    long = any(len(text) >= encoder.max_tokens for text in texts)
    if long:
        from research.encoders import fitting

        texts = [fitting(text, encoder) for text in texts]
    if not texts:
        return []
    found: list[float] = (encoder.embed(texts) @ asked).tolist()
    return found


def _lines(reader: Reader, page_ids: Sequence[int], asked: NDArray[np.float32]) -> dict[int, list[Piece]]:
    """page_id → the lines OCR read there, with cosines of their own."""
    lined = reader.visual.embedded_lines(page_ids) if lines_match_encoder(reader) else {}
    if not lined:
        return {}
    from research.encoders import unpack

    return {
        page_id: [
            Piece(line.text, line.box, float(cosine))
            for line, cosine in zip(lines, cosines(unpack(packed), asked), strict=True)
        ]
        for page_id, (lines, packed) in lined.items()
    }


def _best_patches(similarities: NDArray[np.float32], boxes: list[Box]) -> list[Passage]:
    """The patches that answer most of the question, touching ones joined."""
    weights: dict[int, float] = {}
    for token, index in enumerate(similarities.argmax(axis=1).tolist()):
        if area(boxes[index]) < 0.99:  # the prompt's own words look at no place in particular
            weights[index] = weights.get(index, 0.0) + float(similarities[token, index])
    joined: list[tuple[Box, float]] = []
    for index in sorted(weights, key=lambda index: -weights[index])[:_PATCHES]:
        box, weight = boxes[index], weights[index]
        while (other := next((entry for entry in joined if touches(entry[0], box, _TOUCHING)), None)) is not None:
            joined.remove(other)
            box, weight = union((other[0], box)), other[1] + weight
        joined.append((box, weight))
    joined.sort(key=lambda entry: -entry[1])
    total = max(1, len(similarities))
    return [Passage("", round(max(0.0, weight / total), 4), rounded(box, _DIGITS)) for box, weight in joined[:_MOST]]


ELLIPSIS = "…"
_HIDDEN = "\u0300-\u036f\u0591-\u05c7\u00ad\u200c\u200d\u2060\ufeff"  # accents and joiners, part of their word

_WORD = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)|\d+(?:,\d\d\d(?!\d))*(?:\.\d+)*|(?:[^\W\d_{UNSPACED}][{SIGNS}{_HIDDEN}]*)+"
)
# Blanks here never reach into the next line: a page of empty lines would be gone over again from each of them.
_MARKUP = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]+|>[ \t]?|```\w*|(?=[^\n|]*\|)[ \t|:-]+$)", re.MULTILINE)
# A line of context before the first word found reads better than a passage that begins with it.
_LEAD = 0.25


def page_snippet(item: Item, query: str, width: int = 240) -> str:
    """The best passage of a page in one line, a row with its table's header; without passages, the best window."""
    best = next((passage for passage in item.passages if passage.end > passage.start), None)
    if best is None:
        return snippet(item.text, query, width)
    text = item.text[best.start : best.end]
    if "|" in text:
        rows = [unit for unit in item.units if unit.header is not None and unit.end > best.start]
        header = rows[0].header if rows and rows[0].start < best.end else None
        if header is not None and header[1] <= best.start:
            text = f"{item.text[header[0] : header[1]]}\n{text}"
    return snippet(text, query, width)


def matches(text: str, question: str) -> list[tuple[int, int]]:
    """Where words of the question stand in a text, as full-text search compares them: spans in order, apart."""
    wanted = frozenset(analyze(question))
    known: dict[str, bool] = {}

    def is_wanted(word: str) -> bool:
        if word not in known:
            known[word] = not wanted.isdisjoint(analyze(word))
        return known[word]

    found: list[tuple[int, int]] = []
    for match in _WORD.finditer(text) if wanted else ():
        start, end = match.span()
        if match.lastgroup != "unspaced":
            if is_wanted(match.group()):
                found.append((start, end))
            continue
        for at in range(start, max(start + 1, end - 1)):  # these scripts are searched by pairs of characters
            if is_wanted(text[at : min(end, at + 2)]):
                joins = found and found[-1][1] >= at
                found[-1:] = [(found[-1][0], min(end, at + 2))] if joins else [*found[-1:], (at, min(end, at + 2))]
    return found


def snippet(markdown: str, query: str, width: int = 240) -> str:
    """One line of at most `width` characters around the question's rarest word in a text, cut between words."""
    text = " ".join(_MARKUP.sub(" ", markdown).replace("|", " ").split())
    if len(text) <= width:
        return text
    room = max(1, width - 2 * len(ELLIPSIS) - 2)  # a mark and a blank on either side
    spans = matches(text, query)
    on_page = Counter(text[start:end].casefold() for start, end in spans)
    first = min((on_page[text[start:end].casefold()], start, end) for start, end in spans)[1:] if spans else (0, 0)
    start = max(0, min(first[0] - int(room * _LEAD), len(text) - room))
    if start and (blank := text.find(" ", start - 1, first[0])) >= 0:
        start = blank + 1
    end = min(len(text), start + room)
    if end < len(text) and (blank := text.rfind(" ", max(start, first[1]), end + 1)) > start:
        end = blank
    before, after = f"{ELLIPSIS} " if start else "", f" {ELLIPSIS}" if end < len(text) else ""
    return f"{before}{text[start:end]}{after}"
