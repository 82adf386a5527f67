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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from research.answer.compare import Comparison, compare, stands_in
from research.answer.evidence import Source, Window, best_windows, flat, sources_of
from research.answer.sentences import Sentence, sentences_of
from research.answer.wording import Reading, read
from research.context.injection.headers import forges_header

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Verdict = Literal["carried", "doubtful", "not found", "uncited"]
Embed = Callable[[Sequence[str]], "NDArray[np.float32]"]

HEADING = "a heading"

_DOUBTFUL = 0.45  # of a claim found, for it to be worth reading the source
_ALIKE = 0.6  # cosine of a claim and a passage that speak of the same
_LONGEST = 3000  # characters of a sentence that are compared
_MORE_WINDOWS = 2  # beside the best one, for a sentence of several facts
_NEW = 2  # words or numbers that a further window must bring


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
    checker = _Checker(sources_of(sources, headers or {}), headers or {}, read(question[:_LONGEST]), embed)
    return [checker.check(sentence) for sentence in sentences_of(answer)]


class _Checker:
    def __init__(
        self, sources: dict[int, Source], headers: Mapping[int, str], question: Reading, embed: Embed | None
    ) -> None:
        self._sources = sources
        self._headers = headers
        self._question = question
        self._embed = embed

    def check(self, sentence: Sentence) -> CheckedSentence:
        numbers = sentence.numbers
        cited = [self._sources[number] for number in dict.fromkeys(numbers) if number in self._sources]
        if forges_header(sentence.claim):
            return _told(sentence, "not found", "a source's header is forged in it", 0.0)
        unknown = [number for number in numbers if number not in self._sources]
        if unknown:
            return _told(sentence, "not found", f"[{unknown[0]}] is not among the {len(self._sources)} sources", 0.0)
        if not numbers:
            return _told(sentence, "uncited", HEADING if sentence.kind == "heading" else "it cites nothing", 0.0)
        return self._compared(sentence, cited)

    def _compared(self, sentence: Sentence, cited: list[Source]) -> CheckedSentence:
        claim = sentence.claim[:_LONGEST]
        if _is_verbatim(claim, cited):
            return _told(sentence, "carried", "word for word", 1.0)
        reading = read(claim)
        if not reading.words and not reading.quantities:
            return _told(sentence, "doubtful", "there is nothing in it to compare", 0.0)
        found = self._best(reading, cited)
        return self._judged(sentence, reading, found, cited)

    def _best(self, reading: Reading, cited: list[Source]) -> Comparison:
        scales = frozenset().union(*(source.scales for source in cited))
        known = self._question.keys

        def tried(windows: Sequence[Window]) -> Comparison:
            return compare(reading, windows, scales, known)

        windows = best_windows(reading, cited)
        if not windows:
            return tried([])
        best = max((tried([window]) for window in windows), key=_rank)
        for _ in range(_MORE_WINDOWS):
            if len(best.missing) + len(best.absent) < _NEW:
                break
            more = max((tried([*best.windows, window]) for window in windows + best_windows(reading, cited, best.missing)), key=_rank)
            gained = len(best.missing) + len(best.absent) - len(more.missing) - len(more.absent)
            if gained < _NEW or len(more.conflicts) > len(best.conflicts):
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
                verdict: Verdict = "doubtful" if word.keys & self._question.keys else "not found"
                return _told(sentence, verdict, f"“{_short(word.text)}” is not in {where}", score / 2)
        if score < _DOUBTFUL and self._similarity(sentence, found) < _ALIKE:
            return _told(sentence, "not found", f"little of it is in {where}", score)
        if found.absent:
            return _told(sentence, "doubtful", f"{_short(found.absent[0].text)} stands elsewhere in {where}", score * 0.7)
        if found.conflicts:
            return _told(sentence, "doubtful", f"{where}: {found.conflicts[0]}", score * 0.6)
        if found.rounded:
            return _told(sentence, "doubtful", f"{_short(found.rounded[0].text)} is rounded", score * 0.9)
        if found.missing:
            words = ", ".join(f"“{_short(word.text)}”" for word in found.missing[:3])
            return _told(sentence, "doubtful", f"not in {where}: {words}", score * 0.9)
        return _told(sentence, "carried", f"in {where}", score)

    def _similarity(self, sentence: Sentence, found: Comparison) -> float:
        if self._embed is None or not found.windows:
            return 0.0
        texts = [sentence.claim[:600], *(window.text[:600] for window in found.windows)]
        try:
            vectors = self._embed(texts)
        except ValueError:
            return 0.0
        return float(max(vectors[1:] @ vectors[0]))


def _rank(found: Comparison) -> float:
    """What says all of it in one sentence goes before what needs two, even if that speaks against it."""
    units = sum(len(window.parts) for window in found.windows)
    return found.coverage - 0.02 * len(found.conflicts) - 0.04 * units


def _is_verbatim(claim: str, cited: list[Source]) -> bool:
    said = flat(claim)
    return said.count(" ") >= 6 and any(said in source.flat for source in cited)


def _told(sentence: Sentence, verdict: Verdict, reason: str, score: float) -> CheckedSentence:
    return CheckedSentence(sentence.text, sentence.numbers, verdict, reason, round(score, 3))


def _short(text: str) -> str:
    plain = re.sub(r"\s+", " ", text)
    return plain if len(plain) <= 40 else f"{plain[:39]}…"
