"""Whether the sources that a written answer cites carry what it says: the verdict on each sentence, with its reason.

    carried     what it cites says it: its numbers and names, in the same roles, rows and years, and most of its words
    doubtful    some of it does not, or something speaks against it: read the source
    not found   the citation does not exist or is forged, a number or name is nowhere in it, or it is about other things
    uncited     the sentence cites nothing

No model is asked: `claims` compares words, numbers, names and negations with the best sentences and table rows of the
sources. What cites nothing, but stands in a source word for word, is carried and told where. "doubtful" accuses nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from research.answer.claims.comparison import DENIED, Comparison, compare, may_join, other_names
from research.answer.claims.evidence import Source, Window, best_windows, flat
from research.answer.claims.statement import Reading, fit, read
from research.answer.quotes import language_of
from research.answer.sentences import Sentence, sentences_of
from research.context import forges_header
from research.units import Structure

Verdict = Literal["carried", "doubtful", "not found", "uncited"]

_MOST, _ENOUGH = 0.55, 3  # of it, and words and numbers that are there, for a verb to be left out
_MOST_PROSE = 0.7  # of it, where no number is there to agree
_DOUBTFUL = 0.4  # of a claim found, for it to be worth reading the source
_MORE_WINDOWS = 2  # beside the best one, for a sentence of several facts
_SHORT = 2  # words and numbers of an answer that is understood with its question only
_ASKED = 0.34  # of the question's words that stand beside such an answer

_YES_NO = re.compile(r"(?:yes|no|ja|nein|oui|non|sí|si|sim|não|nee)(?:[,.:;]\s+|\s+[–—-]\s+)", re.IGNORECASE)
_SILENCE = re.compile(
    r"\b(?:sources?|documents?|passages?|pages?|texts?|contexts?|excerpts?)\b[^.]{0,40}"
    r"\b(?:do(?:es)? not|don['’]t|doesn['’]t|no)\b[^.]{0,20}"
    r"\b(?:mention|say|state|contain|specify|provide|give|include|information|discuss|describe|indicate)",
    re.IGNORECASE,
)

HEADING = "a heading"
SOURCE_LIST = "a list of sources"

_LONGEST = 3000  # characters of a sentence that are compared
_BEFORE = 60  # characters in which the word before a citation stands

_LIST_TITLE = re.compile(
    r"\W*(?:sources|references|citations|bibliography|quellen|fuentes|fonti|fontes)\W*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    reason: str
    score: float


class Judge:
    """For the answer to one question. What the question says already, a sentence need not find in its source."""

    def __init__(self, question: str) -> None:
        self._question = read(question)
        self._asked = frozenset(word.stem for word in self._question.words)

    def judge(self, claim: str, cited: Sequence[Source]) -> Judgement:
        if match := _YES_NO.match(claim):
            claim = claim[match.end() :]
        reading = read(claim)
        if all(word.is_light for word in reading.words) and not reading.quantities:
            return Judgement("doubtful", "there is nothing in it to compare", 0.0)
        said = flat(claim)
        is_quote = any(source.quotes(claim) for source in cited)
        if is_quote and any(said in source.flat_units for source in cited):
            return Judgement("carried", "word for word", 1.0)
        found = self._best(reading, cited)
        if is_quote and DENIED not in found.conflicts:  # what is cut out of a sentence may have lost its "no"
            return Judgement("carried", "word for word", 1.0)
        if _SILENCE.search(claim):
            return Judgement("doubtful", "it says what a source does not hold", found.coverage)
        where = " and ".join(f"[{source.number}]" for source in cited[:3])
        return (
            _no_such_number(found, cited, where)
            or _other_language(claim, found, cited, where)
            or _no_such_name(reading, found, cited, where)
            or _little(found, where)
            or _against(found, cited, where)
            or self._beside_the_question(reading, found, where)
            or Judgement("carried", f"in {where}", found.coverage)
        )

    def _best(self, reading: Reading, cited: Sequence[Source]) -> Comparison:
        """The window that says most of a claim, and others for what it lacks."""
        scales = frozenset().union(*(source.scales for source in cited))

        def tried(windows: Sequence[Window]) -> Comparison:
            return compare(reading, windows, scales, self._asked)

        def rank(found: Comparison) -> float:
            return _rank(found) + (0.5 * self._share_asked(found) if _is_short(reading) else 0.0)

        windows = best_windows(reading, cited)
        alone = [tried([window]) for window in windows if may_join(reading, [window])]
        best = max(alone, key=rank, default=tried([]))
        for _ in range(_MORE_WINDOWS):
            lacking = len(best.missing) + len(best.absent)
            if not lacking:
                break
            joined = [[*best.windows, window] for window in (*windows, *best_windows(reading, cited, best.missing))]
            more = max((tried(each) for each in joined if may_join(reading, each)), key=_rank, default=best)
            if len(more.missing) + len(more.absent) >= lacking or len(more.conflicts) > len(best.conflicts):
                break
            best = more
        return best

    def _beside_the_question(self, reading: Reading, found: Comparison, where: str) -> Judgement | None:
        if not _is_short(reading) or self._share_asked(found) >= _ASKED:
            return None
        return Judgement("doubtful", f"the words of the question are elsewhere in {where}", 0.7 * found.coverage)

    def _share_asked(self, found: Comparison) -> float:
        """Of the question's words, how many stand beside what answers it; all, if nothing was asked."""
        words = [word for word in self._question.words if not word.is_light]
        held = [any(word.keys & each.keys or word.stem in each.around for each in found.windows) for word in words]
        return sum(held) / len(words) if words else 1.0


def _is_short(reading: Reading) -> bool:
    return len(reading.words) + len(reading.quantities) <= _SHORT


def _rank(found: Comparison) -> float:
    """What says all of it in one sentence goes before what needs two, even if that speaks against it."""
    units = sum(len(window.parts) for window in found.windows)
    return found.coverage - 0.02 * len(found.conflicts) - 0.04 * units - 0.2 * len(found.absent)


def _no_such_number(found: Comparison, cited: Sequence[Source], where: str) -> Judgement | None:
    for quantity in found.absent:
        if not any(fit(quantity, source.whole, source.scales) for source in cited):
            reason = f"the number {_short(quantity.text)} is not in {where}"
            return Judgement("not found", reason, found.coverage / 2)
    return None


def _other_language(claim: str, found: Comparison, cited: Sequence[Source], where: str) -> Judgement | None:
    """Words of two languages cannot be compared; its numbers are there."""
    own = language_of(claim) if found.coverage < _DOUBTFUL else ""
    if not own or any(source.language in {"", own} for source in cited):
        return None
    return Judgement("doubtful", f"in another language than {where}", found.coverage)


def _no_such_name(reading: Reading, found: Comparison, cited: Sequence[Source], where: str) -> Judgement | None:
    score = found.coverage / 2
    for word in found.missing:
        if word.is_name and not any(word.keys & source.keys for source in cited):
            # The page may leave out what all of its document is about; another name in its place says more.
            replaced = other_names(reading, found.windows) or found.coverage < _DOUBTFUL
            return Judgement("not found" if replaced else "doubtful", f"“{_short(word.text)}” is not in {where}", score)
    return None


def _little(found: Comparison, where: str) -> Judgement | None:
    if found.coverage >= _DOUBTFUL:
        return None
    return Judgement("not found", f"little of it is in {where}", found.coverage)


def _against(found: Comparison, cited: Sequence[Source], where: str) -> Judgement | None:
    if found.absent:
        reason = f"{_short(found.absent[0].text)} stands elsewhere in {where}"
        return Judgement("doubtful", reason, 0.7 * found.coverage)
    if found.conflicts:
        reason = f"[{found.windows[0].source}] {found.conflicts[0]}" if found.windows else found.conflicts[0]
        return Judgement("doubtful", reason, 0.6 * found.coverage)
    if found.inexact:
        return Judgement("doubtful", found.inexact[0], 0.9 * found.coverage)
    in_row = any(window.row for window in found.windows)
    told = [w for w in found.missing if not w.is_verb or found.held < _ENOUGH or (w.turns and not in_row)]
    if told or (found.missing and found.coverage < (_MOST if found.has_amount else _MOST_PROSE)):
        words = ", ".join(f"“{_short(word.text)}”" for word in (told or found.missing)[:3])
        elsewhere = all(any(word.keys & source.keys for source in cited) for word in told[:3])
        stand = "stand" if "," in words else "stands"
        reason = f"{words} {stand} elsewhere in {where}" if elsewhere and told else f"not in {where}: {words}"
        return Judgement("doubtful", reason, 0.9 * found.coverage)
    return None


def _short(text: str, most: int = 40) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


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
    sources: Mapping[int, str | Structure],
    *,
    question: str = "",
    headers: Mapping[int, str] | None = None,
) -> list[CheckedSentence]:
    """Every sentence of an answer, in its order.

    `sources` are the texts that the numbers stand for.
    `headers` are the lines above the sources in the context: who repeats one of them forges nothing but cites it, and
    the name of a file may tell what its pages are about.
    """
    known = {
        number: Source(number, Structure(text) if isinstance(text, str) else text, (headers or {}).get(number, ""))
        for number, text in sources.items()
    }
    checker = _Checker(known, headers or {}, Judge(question[:_LONGEST]))
    return list(checker.check(sentences_of(answer)))


class _Checker:
    """One answer: its sources are read once, and what is said twice is compared once."""

    def __init__(self, sources: Mapping[int, Source], headers: Mapping[int, str], judge: Judge) -> None:
        self._sources = sources
        self._headers = {number: header for number, header in headers.items() if header}
        self._judge = judge
        self._judged: dict[tuple[str, tuple[int, ...]], Judgement] = {}

    def check(self, sentences: Sequence[Sentence]) -> Iterator[CheckedSentence]:
        listed = False  # after "Sources:", lines that begin with a number name the sources
        for sentence in sentences:
            listed = _LIST_TITLE.fullmatch(sentence.claim) is not None or (listed and sentence.begins_with_citation)
            claim, repeated = self._without_headers(sentence.claim)
            numbers = sentence.numbers + repeated
            judgement = self._of_citations(sentence, claim, numbers, listed=listed) or self._of_claim(claim, numbers)
            yield CheckedSentence(
                sentence.text, numbers, judgement.verdict, judgement.reason, round(judgement.score, 3)
            )

    def _without_headers(self, claim: str) -> tuple[str, tuple[int, ...]]:
        """The claim without the headers that it repeats as they are, and their numbers."""
        repeated = tuple(number for number, header in self._headers.items() if header in claim)
        for number in repeated:
            claim = claim.replace(self._headers[number], " ")
        return claim, repeated

    def _of_citations(
        self, sentence: Sentence, claim: str, numbers: tuple[int, ...], *, listed: bool
    ) -> Judgement | None:
        """What its citations say of a sentence already; None if they are there and all exist."""
        if forges_header(claim):
            return Judgement("not found", "a source's header is forged in it", 0.0)
        if unknown := self._unknown(sentence):
            return Judgement("not found", f"[{unknown}] is not among the {len(self._sources)} sources", 0.0)
        if not (listed or numbers or sentence.kind == "heading") and (number := self._verbatim_in(claim, ())):
            return Judgement("carried", f"stands in [{number}]", 1.0)
        if listed or not numbers:
            reason = SOURCE_LIST if listed else HEADING if sentence.kind == "heading" else "it cites nothing"
            return Judgement("uncited", reason, 0.0)
        return None

    def _unknown(self, sentence: Sentence) -> str:
        """The first number that stands for no source, and is no mark of a source that the sentence repeats."""
        cited = [self._sources[number] for number in dict.fromkeys(sentence.numbers) if number in self._sources]
        for citation in sentence.citations:
            unknown = [number for number in citation.numbers if number not in self._sources]
            if unknown:
                mark = "".join(sentence.text[citation.start : citation.end].split())
                before = sentence.text[max(0, citation.start - _BEFORE) : citation.start].split()[-1:]
                if not before or not any(source.has_mark(f"{before[0]}{mark}") for source in cited):
                    return _short(str(unknown[0]), 20)
        return ""

    def _of_claim(self, claim: str, numbers: tuple[int, ...]) -> Judgement:
        existing = tuple(number for number in dict.fromkeys(numbers) if number in self._sources)
        key = (claim[:_LONGEST], existing)
        if key not in self._judged:  # a model may repeat itself for ever
            judgement = self._judge.judge(claim[:_LONGEST], [self._sources[number] for number in existing])
            if judgement.verdict != "carried" and (number := self._verbatim_in(claim, existing)):
                where = " and ".join(f"[{cited}]" for cited in existing[:3])
                judgement = Judgement("doubtful", f"stands in [{number}], not in {where}", judgement.score)
            self._judged[key] = judgement
        return self._judged[key]

    def _verbatim_in(self, claim: str, cited: Sequence[int]) -> int:
        """The first source, not among these, that says a claim word for word; 0 if none does."""
        for number, source in self._sources.items():
            said = number not in cited and source.quotes(claim[:_LONGEST])
            if said and self._judge.judge(claim[:_LONGEST], [source]).verdict == "carried":
                return number
        return 0
