"""Whether the sources that a written answer cites carry what it says, sentence by sentence.

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

from research.answer.claims.evidence import Source
from research.answer.claims.judge import Judge, Judgement, Verdict
from research.answer.sentences import Sentence, sentences_of
from research.context.injection.headers import forges_header
from research.units import Structure

HEADING = "a heading"
SOURCE_LIST = "a list of sources"

_LONGEST = 3000  # characters of a sentence that are compared
_BEFORE = 60  # characters in which the word before a citation stands

_LIST_TITLE = re.compile(
    r"\W*(?:sources|references|citations|bibliography|quellen|fuentes|fonti|fontes)\W*", re.IGNORECASE
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
                    return _short(unknown[0])
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


def _short(number: int) -> str:
    shown = str(number)
    return shown if len(shown) <= 20 else f"{shown[:19]}…"
