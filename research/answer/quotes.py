"""The sentences that most likely answer a question: the best passages of its sources, verbatim, each with its citation.

Nothing is composed. A row of a table or a label with its value is a quote, too. Text that a source has from an attacker
(orders to a model, forged citations) is never quoted, and what stands in two places is quoted once.

How likely a quote answers orders those of several kinds: of a page it is as documents judge it, less the further it is
behind the best; of anything else the item's calibrated score, by how much of the question is in the quote.

What a question asks for is read from its words, as is the language of a text.
"""

from __future__ import annotations

import math
import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from research.context import headers_in, imitates_item, signals_of
from research.models import Item, Passage, Quote
from research.search import BEST, LANGUAGES
from research.store import STOP_WORDS, analyze, letters, normalize
from research.units import Unit

_TABLE: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8"))
_ASKING = _TABLE["asking"]
_COMMON = {name: frozenset(f"{words} {_ASKING[name]}".split()) for name, words in _TABLE["common"].items()}
ASKING = {word: name for name, words in _ASKING.items() for word in words.split()}
_SCRIPTS = {name: re.compile(letters) for name, letters in _TABLE["scripts"].items()}
_LETTERS = re.compile(r"[^\W\d_]+")
_READ = 4000  # characters that are looked at
_SURE = 2  # common words, and more than of any other language
_MANY = 20  # letters of a script
_PROSE = 8  # of them that make a page one of its language; a table or a program has some by chance


def language_of(text: str, sure: int = _SURE) -> str:
    """The language of a text, or of its script the most likely one; "" if the text does not tell."""
    text = text[:_READ]
    letters = sum(map(str.isalpha, text))
    for name, pattern in _SCRIPTS.items():
        if 3 * len(pattern.findall(text)) > letters > 0:
            return name
    words = Counter(_LETTERS.findall(text.lower()))
    counts = Counter({name: sum(words[word] for word in common) for name, common in _COMMON.items()})
    (best, most), (_, second) = counts.most_common(2)
    return best if most >= sure and most > second else ""


def other_languages(question: str, pages: Collection[str]) -> tuple[str, str] | None:
    """The language of a question and the one of its pages, if all that tell have another: their words cannot be
    compared."""
    words = _LETTERS.findall(question[:_READ].lower())
    own = next((ASKING[word] for word in words[:1] if word in ASKING), "") or language_of(question)
    told: dict[str, None] = {}
    for page in pages if own else ():
        if (name := language_of(page, _PROSE)) == own:
            return None
        told |= {name: None} if name else {}
    if not told:
        return None
    other = next(iter(told))
    if any(
        _is_spoken(own, _COMMON.get(own, frozenset()).intersection(words) - _COMMON.get(other, frozenset()), page)
        for page in pages
    ):
        return None
    return own, other


def _is_spoken(language: str, words: frozenset[str], page: str) -> bool:
    """Whether a page speaks it as well: half of these words of it, or many of its letters."""
    if language in _SCRIPTS:
        return len(_SCRIPTS[language].findall(page[:_READ])) >= _MANY
    return 2 * len(words.intersection(_LETTERS.findall(page.lower()))) >= len(words)


Words = frozenset[str]

# What comes after is a pasted text; its beginning tells as much.
_MOST_LETTERS = 5000
_MOST_WORDS = 64

_LETTER = r"[^\W\d_]"
_NUMBER = r"\d+(?:,\d\d\d(?!\d))*(?:\.\d+)*"
_TOKEN = re.compile(rf"(?P<number>{_NUMBER})(?![^\W_])|[^\W_]+")
_PLAIN = re.compile(rf"[a-z]+|{_NUMBER}")
_BEYOND_ASCII = re.compile(r"[^\W\d_a-z]")
_PIECE = re.compile(rf"{_LETTER}+|\d+")
_NO_NAME = re.compile(r"(.)\1+")  # YYYY-MM-DD is a form to fill in
_TWICE = re.compile(r"((?:[^\W\d_a-z][\w&.’'-]*[ ]){1,6})\(([\w&.-]{2,20})\)")
_LEAST = 3  # letters or digits: smaller numbers and pieces ("Q2", "5 days") stand on any page
_ACRONYM = 0.5  # beside a name: the page may have it in full
NO_NAMES = 0.5  # so that one name of one weighs more than one of many
# English without small words is a list of key words, and other languages write other words with capitals.
_SMALL_WORDS = 0.2
_LEAST_SLIP = 5  # letters of a name that may be misspelt
# A stem may end otherwise than its words do: happi(happy), sensibl(sensibility).
_ENDING = 2
# What a question points with is no name: "In Table 3", "Appendix B".
_POINTING = "section chapter appendix annex part paragraph kapitel abschnitt anhang chapitre sección capítulo capitolo"


def words_in(question: str) -> Words:
    """The words that are searched, as full-text search compares them."""
    return frozenset(list(dict.fromkeys(analyze(question[:_MOST_LETTERS])))[:_MOST_WORDS])


def names_in(question: str) -> Mapping[str, float]:
    """The names and numbers of a question, as full-text search has them, with what each counts."""
    text = question[:_MOST_LETTERS]
    tokens = list(_TOKEN.finditer(text))
    small = sum(token.group().lower() in STOP_WORDS for token in tokens)
    capitals_tell = small >= _SMALL_WORDS * len(tokens)
    found: dict[str, float] = {}
    for token in tokens:
        for part, weight in _names(text, token, capitals_tell=capitals_tell):
            found.update((stem, weight) for stem in analyze(part) if stem not in found)
    return {stem: weight for stem, weight in found.items() if stem not in _pointing_words()}


def names_share(question: str) -> Callable[[str], float]:
    """Tells how much a text has of a question's names: 1 for all, or if there are none."""
    names = frozenset(name for name, weight in names_in(question).items() if weight >= 1.0)
    find = finder(names)
    return lambda text: (len(find(text)) + NO_NAMES) / (len(names) + NO_NAMES) if names else 1.0


def same_names(question: str) -> list[tuple[Words, Words]]:
    """The names that a question gives twice, "Westpac (WBC)": a page may have either."""
    return [
        (frozenset(analyze(match[1])), frozenset(analyze(match[2])))
        for match in _TWICE.finditer(question[:_MOST_LETTERS])
    ]


def _names(text: str, token: re.Match[str], *, capitals_tell: bool) -> list[tuple[str, float]]:
    """The parts of one word of a question that are names, each with its weight."""
    word = token.group()
    if token["number"]:
        return [(word, 1.0)] if sum(map(str.isdecimal, word)) >= _LEAST else []
    if any(map(str.isdecimal, word)):  # FY2017
        parts = [part for part in _PIECE.findall(word) if len(part) >= _LEAST]
        return [(part, 1.0 if part.isdecimal() else _ACRONYM) for part in parts]
    if len(word) < 2 or _NO_NAME.fullmatch(word.lower()):
        return []
    if word.isupper():
        return [(word, _ACRONYM)]
    before = text[: token.start()].rstrip()
    begins = not before or before[-1] in ".?!:"
    return [(word, 1.0)] if word[0].isupper() and not begins and capitals_tell else []


@lru_cache(maxsize=1)
def _pointing_words() -> Words:
    kinds = (word for language in LANGUAGES.values() for word in (language.pages, *language.kinds))
    return frozenset(analyze(" ".join((_POINTING, *kinds))))


def finder(words: Words) -> Callable[[str], Words]:
    """Tells which of the words stand in a text. Quicker than to analyse all of it: only what begins as one of these
    words does is looked at."""
    if not all(map(str.isascii, words)):
        return lambda text: words.intersection(analyze(text))
    begins = tuple({word[: max(2, len(word) - _ENDING)] for word in words if word[0].isalpha()})
    numbers = any(not word[0].isalpha() for word in words)

    def find(text: str) -> Words:
        alike = [
            word
            for word in set(_PLAIN.findall(folded(text)))
            if word.startswith(begins) or (numbers and word[0].isdecimal())
        ]
        return words.intersection(analyze(" ".join(alike)))

    return find


def folded(text: str) -> str:
    """`normalize`, but where only dashes and quotation marks are not ASCII: that is most pages, and it takes long."""
    lower = text.lower()
    return lower if lower.isascii() or not _BEYOND_ASCII.search(lower) else normalize(text)


def is_language(question: str) -> bool:
    """Whether a question has a word of the language beside its small ones, or is gibberish."""
    from research.search import is_a_word

    words = dict.fromkeys(letters(normalize(question[:_MOST_LETTERS])))
    return any(is_a_word(word) for word in list(words)[:_MOST_WORDS] if word not in STOP_WORDS and len(word) >= _LEAST)


def has_misspelt(name: str, text: str) -> bool:
    """Whether a word of a text, as `folded` leaves it, is one slip away from a name: health from "Helth"."""
    if len(name) < _LEAST_SLIP or not name.isalpha():
        return False
    alike = re.findall(rf"(?<!{_LETTER}){re.escape(name[0])}{_LETTER}{{{len(name) - 2},}}", text)
    from rapidfuzz.distance import OSA

    # One letter more, less or another, or two changed places.
    return any(OSA.distance(name, stem, score_cutoff=1) <= 1 for stem in analyze(" ".join(dict.fromkeys(alike))))


MOST = 3
ROOM = 400  # characters of a quote with its neighbours
CODE_ROOM = 800  # and with the code that it leads to
_NEAR = 3  # rows above at most, for the line that names their part of a table
_FEWEST_WORDS = 3  # of a further one without a number
_AS_GOOD = 0.65  # of the best one's score, for a further one
_PAGE = 0.35  # what its page counts beside the score of a passage

_ALIKE = 0.9  # of the first one's score, for another that answers as well as it
_AMOUNT = re.compile(r"(?<![\w.,])(\d+(?:[.,]\d+)*)\s?(%|[^\W\d_]{3,})")

_Span = tuple[int, int, int]  # citation, start, end


def quotes_from(sources: Sequence[Item], whole: Sequence[Item], asked: str = "", documents: float = 1.0) -> list[Quote]:
    """Of the sources, in the order of their citations. `whole` are items with all of their text, these among them;
    `documents`: how likely pages are to answer what was `asked`. What one of the sources says anew is not quoted."""
    pages = {str(item.ref): item for item in whole}
    known = {item.ref.key for item in sources}
    of_pages = [item for item in whole if item.ref.kind == "page"]
    worth = {  # what a page counts for its passages: by its sum and its rank, as it was fitted on questions for pages
        str(item.ref): 1.0 / (1.0 + math.exp(-(4.0 * item.raw_score - 1.2 * math.log(rank) - 2.6)))
        for rank, item in enumerate(of_pages, start=1)
    }
    best = max((worth.get(str(item.ref), 0.0) for item in sources), default=0.0) or 1.0
    found = [
        (BEST * passage.score + _PAGE * worth.get(str(item.ref), 0.0) / best, citation, pages[str(item.ref)], passage)
        for citation, item in enumerate(sources, start=1)
        for passage in item.passages
        if passage.end > passage.start and known.isdisjoint(map(item.metadata.get, ("superseded_by", "newer")))
    ]
    most = max((score for score, _, page, _ in found if page.ref.kind == "page"), default=0.0) or 1.0
    likely = [
        documents * score / most if page.ref.kind == "page" else _likely(asked, page, passage.text)
        for score, _, page, passage in found
    ]
    chosen: dict[str, tuple[int, Item, Passage, tuple[int, int]]] = {}
    for at in sorted(range(len(found)), key=lambda at: -likely[at]):
        if len(chosen) == MOST or likely[at] < _AS_GOOD * max(likely):
            break
        _, citation, page, passage = found[at]
        quoted = page.text[passage.start : passage.end]  # of this page alone, where a sentence runs on
        said = " ".join(quoted.split()).casefold()
        # What stands close to a better one is shown with it.
        near = any(
            citation == other and start <= passage.start and passage.end <= end
            for other, *_, (start, end) in chosen.values()
        )
        says = not chosen or len(said.split()) >= _FEWEST_WORDS or any(map(str.isdigit, said))
        if said not in chosen and not near and says and _is_sound(quoted, page):
            chosen[said] = citation, page, passage, _grown(page, passage, 0, [])
    taken = [(citation, passage.start, passage.end) for citation, _, passage, _ in chosen.values()]
    return [_quote(page, passage, citation, taken, asked) for citation, page, passage, _ in chosen.values()]


def _likely(asked: str, item: Item, said: str) -> float:
    """How likely a part of an item that is no page answers: as the item does, by how much of what the item says of the
    question is in that part."""
    words, called = words_in(asked), f"{item.title}\n{item.ref}\n"
    find = finder(words)
    known = find(called + item.text)
    return item.score * len(find(called + said)) / len(known) if known else item.score


def differing_figures(question: str, quotes: Sequence[Quote], names: Mapping[int, str]) -> str:
    """Name the figures of quotes that answer alike and differ ("5 years, page 7; 10 years, page 10"), if any do.

    A figure counts if the question names its unit, the quotes say the same words of it, and each gives one alone.
    `names` are those of the files, by citation.
    """
    asked = frozenset(analyze(question))
    told: dict[str, Quote] = {}
    for quote in quotes:
        said = _marked(quote)
        same = not told or asked & set(analyze(said)) == asked & set(analyze(_marked(next(iter(told.values())))))
        amounts = {
            found for found in _AMOUNT.findall(said) if found[1] == "%" or not asked.isdisjoint(analyze(found[1]))
        }
        if same and len(amounts) == 1 and quote.score >= _ALIKE * quotes[0].score:
            number, unit = amounts.pop()
            told.setdefault(f"{number}{'' if unit == '%' else ' '}{unit}", quote)
    if len({quote.citation for quote in told.values()}) < len(told) or len(told) < 2:
        return ""  # one page says what each of its figures is of
    files = {names[quote.citation] for quote in told.values()}
    several = len(files) > 1
    if any(0 < sum(number in name for name in files) < len(files) for number in re.findall(r"\d+", question)):
        return ""  # "the 2025 handbook" has chosen
    places = (f"{f'{names[quote.citation]} ' if several else ''}page {quote.page}" for quote in told.values())
    return f"The pages differ: {'; '.join(f'{figure}, {place}' for figure, place in zip(told, places, strict=True))}."


def _marked(quote: Quote) -> str:
    return quote.text[slice(*quote.marked)]


def _quote(page: Item, passage: Passage, citation: int, taken: list[_Span], asked: str) -> Quote:
    start, end = _grown(page, passage, citation, taken)
    header, is_page = table_above(page, passage), page.ref.kind == "page"
    return Quote(
        text=page.text[start:end],
        citation=citation,
        ref=str(page.ref),
        page=int(page.ref.part) if is_page else 0,
        score=passage.score if is_page else round(_likely(asked, page, f"{header}\n{page.text[start:end]}"), 4),
        start=start,
        end=end,
        box=passage.box,
        header=header,
        marked=(passage.start - start, passage.end - start),
    )


def table_above(page: Item, passage: Passage) -> str:
    """The title and the header of the table that a row stands in, as the page has them."""
    row = _unit_at(page.units, passage.start)
    spans = [span for span in (row.title, row.header) if span is not None and span[1] <= passage.start] if row else []
    if len(spans) == 2 and spans[1][1] - spans[0][0] > ROOM:
        del spans[0]
    above = page.text[spans[0][0] : spans[-1][1]] if spans else ""
    return above if _is_sound(above, page) else ""


def _unit_at(units: Sequence[Unit], place: int) -> Unit | None:
    return units[max(0, bisect_right(units, place, key=lambda unit: unit.start) - 1)] if units else None


def _grown(page: Item, passage: Passage, citation: int, taken: list[_Span]) -> tuple[int, int]:
    """The passage with the units after and before it, as far as there is room, no heading parts them, and none is part
    of another quote; of what is no page, those of its paragraph. A row begins at the line that names its part of the
    table, if that is near. `taken` is added to."""
    units, start, end = page.units, passage.start, passage.end
    row = _unit_at(units, start)
    spans = (row.title, row.header) if row else ()
    top = max((span[1] for span in spans if span is not None and span[1] <= start), default=0)
    others = [(first, last) for number, first, last in taken if number == citation and (first, last) != (start, end)]

    def has_room(unit: Unit) -> bool:
        return max(end, unit.end) - min(start, unit.start) <= (CODE_ROOM if unit.kind == "code" else ROOM)

    def may_join(unit: Unit) -> bool:
        free = all(unit.end <= first or last <= unit.start for first, last in others)
        sound = not page.signals or _is_sound(page.text[unit.start : unit.end], page)
        near = page.ref.kind == "page" or row is None or unit.block == row.block
        return unit.kind != "heading" and unit.start >= top and free and sound and near

    after = bisect_right(units, end - 1, key=lambda unit: unit.start)
    before = bisect_right(units, start, key=lambda unit: unit.start) - 2
    above = units[max(0, before + 1 - _NEAR) : before + 1] if row is not None and row.header is not None else []
    part = max((at for at, unit in enumerate(above) if unit.kind == "line" and unit.header is not None), default=_NEAR)
    if above[part:] and all(has_room(unit) and may_join(unit) for unit in above[part:]):
        start, before = above[part].start, before - len(above[part:])
    while True:
        if after < len(units) and has_room(units[after]) and may_join(units[after]):
            end, after = units[after].end, after + 1
        elif before >= 0 and has_room(units[before]) and may_join(units[before]):
            start, before = units[before].start, before - 1
        else:
            if not _is_sound(page.text[start:end], page):  # what an attacker wrote may stand in several units
                start, end = passage.start, passage.end
            taken.append((citation, start, end))
            return start, end


def _is_sound(text: str, page: Item) -> bool:
    """Whether a part of a page speaks to nobody but the reader; a page without signals has no part that does."""
    forged = any(headers_in(text)) or imitates_item(text)
    return any(map(str.isalnum, text)) and not forged and not (page.signals and signals_of(text))
