"""Cases for the check of an answer, made by a seed from real pages: true sentences, verbatim and reworded by rules that
keep their meaning, and false ones: a number changed, a name swapped, negated, cited from another source, made up of two
halves.

A case has three sources, one of which holds the sentence.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from research.answer.check import CheckedSentence, check_answer
from research.units import split
from tests.research.answer.rewordings import NUMBER, REWORDINGS, SPELT, SPELT_NUMBER

FALSE = ("number", "name", "negated", "moved", "invented")


@dataclass(frozen=True, slots=True)
class Case:
    kind: str
    sentence: str  # without its citation
    cited: int
    sources: Mapping[int, str]
    origin: str  # the true sentence that it was made from
    headers: Mapping[int, str] = field(default_factory=dict)  # the lines above the sources

    @property
    def answer(self) -> str:
        body = self.sentence.rstrip()
        mark = body[-1] if body[-1] in ".!?。" else ""
        return f"{body[: len(body) - len(mark)]} [{self.cited}]{mark}"


def case_of(kind: str, sentence: str, cited: int, placed: Mapping[int, tuple[str, str]], origin: str = "") -> Case:
    """`placed` are the sources, each with the name of its file, which stands above it in a context."""
    headers = {number: f"[Document {number}: {name}, Page 1]" for number, (name, _) in placed.items()}
    return Case(kind, sentence, cited, {number: text for number, (_, text) in placed.items()}, origin, headers)


def verdict_of(case: Case) -> CheckedSentence:
    """What the check says of the sentence; of the part that cites, if it is taken for several."""
    checked = check_answer(case.answer, case.sources, headers=case.headers)
    return next(sentence for sentence in reversed(checked) if sentence.citations)


def is_right(case: Case, verdict: str) -> bool:
    if case.kind == "verbatim":
        return verdict == "carried"
    if case.kind.startswith("reworded"):
        return verdict in {"carried", "doubtful"}
    return verdict in {"doubtful", "not found"}


def cases_from(documents: Mapping[str, Sequence[str]], seed: int, count: int) -> list[Case]:
    """About `count` cases of each kind, from pages of every document in turn."""
    maker = _Maker(documents, random.Random(seed))
    makers: dict[str, Callable[[str, str, str], str | None]] = {
        "verbatim": lambda sentence, page, doc: sentence,
        "reworded": maker.reworded,
        "number": maker.other_number,
        "name": maker.other_name,
        "negated": maker.negated,
        "moved": lambda sentence, page, doc: sentence,
        "invented": maker.invented,
    }
    return [case for kind, make in makers.items() for case in maker.cases(kind, make, count)]


_SENTENCE = re.compile(r"[A-Z][^|\n\[\]]{35,260}[.!]$")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: (?:van |de )?[A-Z][a-z]+)*")


class _Maker:
    def __init__(self, documents: Mapping[str, Sequence[str]], chance: random.Random) -> None:
        self._chance = chance
        self._pages = [(name, page) for name, pages in documents.items() for page in pages if page.strip()]
        self._sentences = {number: list(_sentences(page)) for number, (_, page) in enumerate(self._pages)}
        self._usable = [number for number, found in self._sentences.items() if found]
        self._names = sorted({name for found in self._sentences.values() for s in found for name in _NAME.findall(s)})

    def cases(self, kind: str, make: Callable[[str, str, str], str | None], count: int) -> Iterator[Case]:
        made, tries = 0, 0
        while made < count and tries < 60 * count:
            tries += 1
            number = self._chance.choice(self._usable)
            document, page = self._pages[number]
            origin = self._chance.choice(self._sentences[number])
            said = make(origin, page, document)
            if said is None:
                continue
            others = [other for other in self._chance.sample(self._pages, min(8, len(self._pages))) if other[1] != page]
            others = [page for page in others if _plain(origin) not in _plain(page[1])][:2]
            if len(others) < 2:
                continue
            own = self._chance.randint(1, 3)
            placed = dict(zip([n for n in (1, 2, 3) if n != own], others, strict=True)) | {own: (document, page)}
            cited = own if kind != "moved" else self._chance.choice([n for n in (1, 2, 3) if n != own])
            made += 1
            yield case_of(kind, said, cited, placed, origin)

    def reworded(self, sentence: str, page: str, document: str) -> str | None:
        """Two or more of the changes below."""
        changes = [*REWORDINGS]
        self._chance.shuffle(changes)
        done = 0
        said = sentence
        for change in changes:
            other = change(said, self._chance)
            if other != said:
                said, done = other, done + 1
            if done == 3:
                break
        return said if done >= 2 else None

    def other_number(self, sentence: str, page: str, document: str) -> str | None:
        found = [*NUMBER.finditer(sentence), *SPELT_NUMBER.finditer(sentence)]
        if not found:
            return None
        match = self._chance.choice(found)
        old = match.group()
        if old.isalpha():
            new = self._chance.choice([word for word in SPELT[1:] if word != old])
        else:
            digits = [place for place, char in enumerate(old) if char.isdigit()]
            place = self._chance.choice(digits)
            others = [str(n) for n in range(10) if str(n) != old[place] and not (n == 0 and place == 0)]
            new = old[:place] + self._chance.choice(others) + old[place + 1 :]
        return sentence[: match.start()] + new + sentence[match.end() :]

    def other_name(self, sentence: str, page: str, document: str) -> str | None:
        found = list(_NAME.finditer(sentence))
        if not found:
            return None
        match = self._chance.choice(found)
        own = set(match.group().split())
        others = [name for name in self._names if not own & set(name.split()) and name not in sentence]
        if not others:
            return None
        return sentence[: match.start()] + self._chance.choice(others) + sentence[match.end() :]

    def negated(self, sentence: str, page: str, document: str) -> str | None:
        ways = [
            (r"\b(is|are|was|were|may|can|must|should|will|would|could) not\b", r"\1"),
            (r"\b(does|do|did) not (\w+)", r"\2"),
            (r"\b(\w+)n['’]t\b", r"\1"),
            (r"\bnever\b", "always"),
            (r"\bno (?=[a-z]+ )", "a "),
            (r"\bwithout\b", "with"),
            (r"\b[Nn]obody\b", "everybody"),
            (r"\b(is|are|was|were|may|can|must|should|will|would|could) (?!not\b)", r"\1 not "),
            (r"\b(has|have|had) (?=\w+(?:ed|en)\b)", r"\1 not "),
            (
                r" (rose|fell|grew|increased|decreased|runs|covers|includes|provides|requires|needs|reports) ",
                r" never \1 ",
            ),
        ]
        for pattern, new in ways[: self._chance.choice((0, 6, 10))] + ways:
            said = re.sub(pattern, new, sentence, count=1)
            if said != sentence:
                return said
        return None

    def invented(self, sentence: str, page: str, document: str) -> str | None:
        """The beginning of one sentence and the end of another, of the same document or collection."""
        near = [n for n in self._usable if self._pages[n][0] == document and self._pages[n][1] != page] or self._usable
        other = self._chance.choice(self._sentences[self._chance.choice(near)])
        one, two = sentence.rstrip(".").split(), other.split()
        if len(one) < 8 or len(two) < 8 or set(one) & set(two[len(two) // 2 :]) > {"the", "a"}:
            return None
        return " ".join(one[: len(one) // 2] + two[len(two) // 2 :])


def _sentences(page: str) -> Iterator[str]:
    for unit in split(page):
        text = " ".join(page[unit.start : unit.end].split())
        if unit.kind == "item":
            text = re.sub(r"^(?:[-*•]|\d{1,2}[.)])\s+", "", text)
        is_one = len(split(text)) == 1
        if (
            unit.kind in {"sentence", "item"}
            and is_one
            and _SENTENCE.match(text)
            and sum(map(str.isalpha, text)) > 0.6 * len(text)
        ):
            yield text


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
