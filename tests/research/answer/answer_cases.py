"""Cases for the check of an answer, made by a seed from real pages: true sentences, verbatim and reworded by rules that keep
their meaning, and false ones: a number changed, a name swapped, negated, cited from another source, made up of two halves.

A case has three sources, one of which holds the sentence. The words that rewording puts in are this file's own.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from research.answer.check import CheckedSentence, check_answer
from research.answer.similarity import Embed
from research.context.units import split

TRUE = ("verbatim", "reworded")
FALSE = ("number", "name", "negated", "moved", "invented")


@dataclass(frozen=True, slots=True)
class Case:
    kind: str
    sentence: str  # without its citation
    cited: int
    sources: Mapping[int, str]
    origin: str  # the true sentence that it was made from

    @property
    def answer(self) -> str:
        body = self.sentence.rstrip()
        mark = body[-1] if body[-1] in ".!?。" else ""
        return f"{body[: len(body) - len(mark)]} [{self.cited}]{mark}"


def verdict_of(case: Case, embed: Embed | None = None) -> CheckedSentence:
    """What the check says of the sentence; of the part that cites, if it is taken for several."""
    checked = check_answer(case.answer, case.sources, embed)
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
_NUMBER = re.compile(r"(?<![\w.,:-])\d[\d,]*(?:\.\d+)?(?![\w:-]|\.\d)")
_SPELT = "one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
_SPELT_NUMBER = re.compile(rf"(?<!-)\b(?:{'|'.join(_SPELT[1:])})\b(?! (?:hundred|thousand|million))")


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
            others = [text for _, text in others if _plain(origin) not in _plain(text)][:2]
            if len(others) < 2:
                continue
            own = self._chance.randint(1, 3)
            sources = dict(zip([n for n in (1, 2, 3) if n != own], others, strict=True)) | {own: page}
            cited = own if kind != "moved" else self._chance.choice([n for n in (1, 2, 3) if n != own])
            made += 1
            yield Case(kind, said, cited, sources, origin)

    def reworded(self, sentence: str, page: str, document: str) -> str | None:
        """Two or more of the changes below."""
        changes = [*_REWORDINGS]
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
        found = [*_NUMBER.finditer(sentence), *_SPELT_NUMBER.finditer(sentence)]
        if not found:
            return None
        match = self._chance.choice(found)
        old = match.group()
        if old.isalpha():
            new = self._chance.choice([word for word in _SPELT[1:] if word != old])
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
            (r" (rose|fell|grew|increased|decreased|runs|covers|includes|provides|requires|needs|reports) ", r" never \1 "),
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
        if unit.kind in {"sentence", "item"} and is_one and _SENTENCE.match(text) and sum(map(str.isalpha, text)) > 0.6 * len(text):
            yield text


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


# Words that may be put for others in nearly any sentence.
_OTHER_WORDS = {
    "about": "roughly", "also": "in addition", "began": "started", "begins": "starts", "bought": "purchased", "buy": "purchase",
    "company": "firm", "costs": "expenses", "employees": "workers", "every": "each", "fell": "dropped", "get": "receive",
    "gets": "receives", "help": "assist", "kept": "retained", "large": "big", "may": "can", "must": "has to", "need": "require",
    "needs": "requires", "often": "frequently", "paid": "remunerated", "rose": "went up", "show": "demonstrate", "shows": "demonstrates",
    "small": "little", "used": "employed", "within": "inside", "yearly": "annual", "because": "since",
    "before": "prior to", "after": "following", "nobody": "no one", "only": "solely", "stands": "is located", "whole": "entire",
    "increase": "rise", "increased": "rose", "decreased": "declined", "provide": "supply", "provides": "supplies", "such as": "like",
    "customers": "clients", "additional": "extra", "obtain": "get", "ensure": "make sure", "approximately": "around", "include": "comprise",
    "includes": "comprises", "required": "needed", "receive": "get", "choose": "select", "chosen": "selected", "checked": "verified",
    "replaced": "exchanged", "telephone": "phone", "people": "persons", "told": "informed", "due to": "owing to", "in order to": "to",
}  # fmt: skip
_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905


def _other_word(sentence: str, chance: random.Random) -> str:
    known = [word for word in _OTHER_WORDS if re.search(rf"\b{word}\b", sentence)]
    for word in chance.sample(known, min(2, len(known))):
        sentence = re.sub(rf"\b{word}\b", _OTHER_WORDS[word], sentence, count=1)
    return sentence


def _other_form_of_number(sentence: str, chance: random.Random) -> str:
    def other(match: re.Match[str]) -> str:
        text = match.group()
        if "," in text:
            return text.replace(",", "")
        if text.isdigit() and 2 <= int(text) <= 12:
            return _SPELT[int(text) - 1]
        return text

    said = _NUMBER.sub(other, sentence)
    said = re.sub(r"(?<=\d) ?%", " percent", said) if "%" in said else said.replace(" per cent", "%")
    if said == sentence:
        said = _SPELT_NUMBER.sub(lambda match: str(_SPELT.index(match.group()) + 1), sentence)
    return said


def _other_date(sentence: str, chance: random.Random) -> str:
    months = "|".join(_MONTHS)
    said = re.sub(rf"\b(\d{{1,2}}) ({months})\b( \d{{4}})?", lambda m: f"{m[2]} {m[1]}{',' + m[3] if m[3] else ''}", sentence)
    if said == sentence:
        said = re.sub(rf"\b({months}) (\d{{1,2}}), (\d{{4}})\b", r"\2 \1 \3", sentence)
    return said


def _contracted(sentence: str, chance: random.Random) -> str:
    said = re.sub(r"\b(is|are|was|were|does|do|did|should|would|could) not\b", r"\1n't", sentence)
    said = re.sub(r"\bcannot\b", "can't", said)
    return re.sub(r"\b([Ww]e|[Tt]hey|[Yy]ou) are\b", r"\1're", said)


def _other_order(sentence: str, chance: random.Random) -> str:
    """A clause before the main one goes behind it, or the other way round."""
    match = re.fullmatch(r"((?:When|If|After|Before|In|At|On|During|Since|For|Because|Although|While|Under) [^,;:]{8,90}), ([^;:]{12,})\.", sentence)
    if match:
        lead = match[1][0].lower() + match[1][1:]
        first = match[2][0].upper() + match[2][1:]
        return f"{first} {lead}."
    match = re.fullmatch(r"([A-Z][^;:,]{15,}) ((?:when|if|because|although|unless|until) [^;:,]{10,})\.", sentence)
    if match and match[1].split()[0] in {"The", "A", "An", "This", "These", "It", "They", "We", "You", "All", "Most", "Each", "Every"}:
        return f"{match[2][0].upper()}{match[2][1:]}, {match[1][0].lower()}{match[1][1:]}."
    return sentence


def _attributed(sentence: str, chance: random.Random) -> str:
    first = sentence.split()[0]
    if first not in {"The", "A", "An", "This", "These", "It", "They", "We", "You", "All", "Most", "Each", "Every", "In", "If", "No"}:
        return sentence
    lead = chance.choice(["According to the document,", "The source states that", "It is reported that", "As the text says,"])
    return f"{lead} {first.lower()}{sentence[len(first) :]}"


def _without_adverb(sentence: str, chance: random.Random) -> str:
    return re.sub(r" (?:also|very|quite|often|usually|generally|typically|always|carefully|directly|significantly) (?=[a-z])", " ", sentence, count=1)


def _active(sentence: str, chance: random.Random) -> str:
    match = re.fullmatch(r"((?:The|A|An|Our|Your|This|These) [\w -]{3,40}) (is|are|was|were) (\w+ed) by ((?:the|a|an|our) [\w -]{3,40})\.", sentence)
    if not match:
        return sentence
    what = match[1][0].lower() + match[1][1:]
    return f"{match[4][0].upper()}{match[4][1:]} {match[3]} {what}."


_REWORDINGS = (
    _other_word, _other_word, _other_form_of_number, _other_date, _contracted, _other_order, _attributed, _without_adverb, _active
)  # fmt: skip
