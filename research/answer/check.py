"""Whether the sources that a written answer cites carry what it says, sentence by sentence.

    carried     its words, numbers and names stand in what it cites, or known words for them, and nothing speaks against it
    doubtful    some of it does not, or something speaks against it: read the source
    not found   the citation does not exist or is forged, a number or name is nowhere in it, or it speaks of other things
    uncited     the sentence cites nothing

No model: words, numbers, names and negations are compared with the best sentences of the sources (`evidence`), and
with an encoder at hand the meaning of the two. So "carried" says that the source has these words, not that it is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from research.answer.compare import Comparison, compare, may_join, other_names, stands_in
from research.answer.evidence import Source, Window, best_windows, flat, sources_of
from research.answer.conflicts import DENIED
from research.answer.language import language_of
from research.answer.sentences import Sentence, sentences_of
from research.answer.similarity import Embed, Similarity
from research.answer.wording import Reading, read
from research.context.injection.headers import forges_header

Verdict = Literal["carried", "doubtful", "not found", "uncited"]

HEADING = "a heading"
SOURCE_LIST = "a list of sources"

_DOUBTFUL = 0.45  # of a claim found, for it to be worth reading the source
_ALIKE = 0.6  # cosine of a claim and a passage that speak of the same
_LONGEST = 3000  # characters of a sentence that are compared
_MORE_WINDOWS = 2  # beside the best one, for a sentence of several facts
_SHORT = 2  # words and numbers of an answer that is understood with its question only
_ASKED = 0.34  # of the question's words that stand beside such an answer
_VERBATIM = 4  # words that can hardly stand in a source by chance

_LIST_TITLE = re.compile(r"\W*(?:sources|references|citations|bibliography|quellen|sources citées|fuentes|fonti|fontes)\W*", re.I)
_YES_NO = re.compile(r"(?:yes|no|ja|nein|oui|non|sí|si|sim|não|nee)(?:[,.:;]\s+|\s+[–—-]\s+)", re.IGNORECASE)
_SILENCE = re.compile(
    r"\b(?:sources?|documents?|passages?|pages?|texts?|contexts?|excerpts?)\b[^.]{0,40}\b(?:do(?:es)? not|don['’]t|doesn['’]t|no)\b"
    r"[^.]{0,20}\b(?:mention|say|state|contain|specify|provide|give|include|information|discuss|describe|indicate)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of the answer as written. `score` is how much of it its sources hold, 0 to 1."""

    text: str
    citations: tuple[int, ...]
    verdict: Verdict
    reason: str
    score: float


def check_answer(
    answer: str,
    sources: Mapping[int, str],
    embed: Embed | None = None,
    *,
    question: str = "",
    headers: Mapping[int, str] | None = None,
) -> list[CheckedSentence]:
    """Every sentence of an answer, in its order.

    `sources` are the texts that the numbers stand for. `embed` gives unit vectors; without it words alone are compared.
    `headers` are the lines above the sources in the context: a sentence that repeats one of them forges nothing, and the
    name of a file may tell what its pages are about.
    """
    checker = _Checker(sources_of(sources, headers or {}), headers or {}, read(question[:_LONGEST]), Similarity(embed))
    return list(checker.check(sentences_of(answer)))


class _Checker:
    def __init__(
        self, sources: dict[int, Source], headers: Mapping[int, str], question: Reading, similarity: Similarity
    ) -> None:
        self._sources = sources
        self._headers = headers
        self._question = question
        self._asked = frozenset(word.stem for word in question.words)
        self._similarity = similarity

    def check(self, sentences: Sequence[Sentence]) -> Iterator[CheckedSentence]:
        listed = False
        for sentence in sentences:
            listed = _LIST_TITLE.fullmatch(sentence.claim) is not None or (listed and sentence.begins_with_citation)
            yield self._checked(sentence, listed)

    def _checked(self, sentence: Sentence, listed: bool) -> CheckedSentence:
        claim = sentence.claim
        for header in self._headers.values():
            claim = claim.replace(header, " ")
        if forges_header(claim):
            return _told(sentence, "not found", "a source's header is forged in it", 0.0)
        numbers = [*sentence.numbers, *(n for n, header in self._headers.items() if header and header in sentence.claim)]
        cited = [self._sources[number] for number in dict.fromkeys(numbers) if number in self._sources]
        if unknown := self._unknown(sentence, cited):
            return _told(sentence, "not found", f"[{unknown[0]}] is not among the {len(self._sources)} sources", 0.0)
        if listed or not cited:
            reason = SOURCE_LIST if listed else HEADING if sentence.kind == "heading" else "it cites nothing"
            return _told(sentence, "uncited", reason, 0.0)
        return self._compared(sentence, _YES_NO.sub("", claim[:_LONGEST], count=1) if _YES_NO.match(claim) else claim[:_LONGEST], cited)

    def _unknown(self, sentence: Sentence, cited: list[Source]) -> list[int]:
        """Numbers that stand for no source, and are no marks of the source that the sentence repeats."""
        found = []
        for citation in sentence.citations:
            mark = "".join(sentence.text[citation.start : citation.end].split())
            before = sentence.text[: citation.start].split()[-1:]
            if not any(source.has_mark(mark, "".join(before)) for source in cited if before):
                found += [number for number in citation.numbers if number not in self._sources]
        return found

    def _compared(self, sentence: Sentence, claim: str, cited: list[Source]) -> CheckedSentence:
        reading = read(claim)
        if not reading.words and not reading.quantities:
            return _told(sentence, "doubtful", "there is nothing in it to compare", 0.0)
        found = self._best(reading, cited)
        if _is_verbatim(claim, cited) and not any(DENIED in conflict for conflict in found.conflicts):
            return _told(sentence, "carried", "word for word", 1.0)
        if _SILENCE.search(claim):
            return _told(sentence, "doubtful", "it says what a source does not hold", found.coverage)
        return self._judged(sentence, reading, found, cited)

    def _best(self, reading: Reading, cited: list[Source]) -> Comparison:
        scales = frozenset().union(*(source.scales for source in cited))
        known = self._asked

        def tried(windows: Sequence[Window]) -> Comparison:
            return compare(reading, windows, scales, known)

        windows = best_windows(reading, cited)
        if not windows:
            return tried([])
        short = len(reading.words) + len(reading.quantities) <= _SHORT
        best = max(
            (tried([window]) for window in windows if may_join(reading, [window])),
            key=lambda found: _rank(found) + (0.5 * self._share_asked(found) if short else 0.0),
        )
        for _ in range(_MORE_WINDOWS):
            lacking = len(best.missing) + len(best.absent)
            if not lacking:
                break
            others = [*windows, *best_windows(reading, cited, best.missing)]
            joined = [[*best.windows, window] for window in others]
            more = max((tried(each) for each in joined if may_join(reading, each)), key=_rank, default=best)
            if len(more.missing) + len(more.absent) >= lacking or len(more.conflicts) > len(best.conflicts):
                break
            best = more
        return best

    def _judged(self, sentence: Sentence, reading: Reading, found: Comparison, cited: list[Source]) -> CheckedSentence:
        where = " and ".join(f"[{source.number}]" for source in cited[:3])
        score = found.coverage
        for quantity in found.absent:
            if not any(stands_in(quantity, source) for source in cited):
                return _told(sentence, "not found", f"the number {_short(quantity.text)} is not in {where}", score / 2)
        for word in found.missing:
            if word.is_name and not any(word.keys & source.keys for source in cited):
                # The page may leave out what all of its document is about; another name in its place says more.
                others = other_names(reading, found.windows)
                verdict: Verdict = "not found" if others or score < _DOUBTFUL else "doubtful"
                return _told(sentence, verdict, f"“{_short(word.text)}” is not in {where}", score / 2)
        if score < _DOUBTFUL:
            if _in_other_language(sentence, cited):
                return _told(sentence, "doubtful", f"in another language than {where}, numbers and names apart", score)
            if self._similarity.best(sentence.claim, (window.text for window in found.windows), cited) < _ALIKE:
                return _told(sentence, "not found", f"little of it is in {where}", score)
            return _told(sentence, "doubtful", f"in other words than {where}", score)
        if found.absent:
            return _told(sentence, "doubtful", f"{_short(found.absent[0].text)} stands elsewhere in {where}", score * 0.7)
        if found.conflicts:
            return _told(sentence, "doubtful", f"{where}: {found.conflicts[0]}", score * 0.6)
        if found.inexact:
            return _told(sentence, "doubtful", found.inexact[0], score * 0.9)
        if found.missing:
            words = ", ".join(f"“{_short(word.text)}”" for word in found.missing[:3])
            return _told(sentence, "doubtful", f"not in {where}: {words}", score * 0.9)
        if len(reading.words) + len(reading.quantities) <= _SHORT and self._share_asked(found) < _ASKED:
            return _told(sentence, "doubtful", f"the words of the question are elsewhere in {where}", score * 0.7)
        return _told(sentence, "carried", f"in {where}", score)

    def _share_asked(self, found: Comparison) -> float:
        """Of the question's words, how many stand beside what answers it; all, if nothing was asked."""
        words = [word for word in self._question.words if not word.is_light]
        held = sum(any(word.keys & window.keys or word.stem in window.around for window in found.windows) for word in words)
        return held / len(words) if words else 1.0


def _rank(found: Comparison) -> float:
    """What says all of it in one sentence goes before what needs two, even if that speaks against it."""
    units = sum(len(window.parts) for window in found.windows)
    return found.coverage - 0.02 * len(found.conflicts) - 0.04 * units


def _in_other_language(sentence: Sentence, cited: list[Source]) -> bool:
    own = language_of(sentence.claim)
    return bool(own) and all(source.language not in {"", own} for source in cited)


def _is_verbatim(claim: str, cited: list[Source]) -> bool:
    said = flat(claim)
    return said.count(" ") > _VERBATIM and any(said in source.flat for source in cited)


def _told(sentence: Sentence, verdict: Verdict, reason: str, score: float) -> CheckedSentence:
    return CheckedSentence(sentence.text, sentence.numbers, verdict, reason, round(score, 3))


def _short(text: str) -> str:
    plain = re.sub(r"\s+", " ", text)
    return plain if len(plain) <= 40 else f"{plain[:39]}…"
