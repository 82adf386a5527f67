"""What a page says of other pages of its document: "see Table 5", "as Figure 3 shows", "Section 4.2", "on page 12".

A wrong edge costs more than one that is missing: a reference counts only where its sentence refers, and a target only
if it is one page. Functions of plain text; what is untrusted in it can do no more than be found or not.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from research.models import OutlineEntry
from research.search import LANGUAGES
from research.store import PageText

MOST_LETTERS = 60_000  # of a page
MOST_ON_PAGE = 60  # references of a page
_WIDEST = 6  # of a range

SECTION, PAGE, STEP = "section", "page", "step"


class Reference(NamedTuple):
    """What is pointed at: a kind of captions ("table"), SECTION, PAGE, or STEP with how many pages further."""

    kind: str
    number: str


# Words of all languages, by what they are for.
WORDS: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8")).items()
}
# "Table 5 of the report", "Figure 3 in [12]": somebody else's.
_OF_ANOTHER = (
    r"(?!\s+(?:(?:of|from|des|von|du|de|del)\s+(?!this\b|the\s+(?:present|annex|appendix)\b|diese)[\w\[(]"
    r"|in\s+[\[(]))"
)
_NUMBER = r"(?:\d{1,3}(?:[.\-–]\d{1,3}){0,3}|[a-z](?:[.\-–]?\d{1,3}){1,3})"
_NEXT = (
    r"(?:on|see|over|auf)\s+(?:the\s+|der\s+)?(?:(?P<next>next|following|nächsten|folgenden)"
    r"|(?P<before>previous|preceding|vorigen|vorherigen))\s+(?:page|seite)\b|(?P<over>overleaf|umseitig)"
    r"|(?:à la page|en la página|alla pagina)\s+(?:(?P<suivante>suivante|siguiente|seguente)"
    r"|(?P<precedente>précédente|anterior|precedente))\b"
)


@lru_cache(maxsize=1)
def _groups() -> Mapping[str, str]:
    """Every spelling of a kind of captions → one of them for all: "fig" and "figure", "abb" and "abbildung"."""
    groups: dict[str, str] = {}
    for language in LANGUAGES.values():
        for spelled in language.kinds:
            words = spelled.split()
            kind = next((groups[word] for word in words if word in groups), words[0])
            groups.update(dict.fromkeys(words, kind))
            if language is LANGUAGES["en"]:
                groups.update((f"{word}s", kind) for word in words)
    return groups


class _Patterns(NamedTuple):
    """For text in lower case. Each begins with plain words, which are looked for quickly; what must stand before them
    is looked at afterwards."""

    caption: re.Pattern[str]  # that is referred to
    section: re.Pattern[str]
    page: re.Pattern[str]
    step: re.Pattern[str]
    line: re.Pattern[str]  # a caption as it stands over or under something; for text as it is


@lru_cache(maxsize=1)
def _patterns() -> _Patterns:
    kinds, sections = _any(_groups()), _any(WORDS["sections"])
    more = rf"(?:\s*(?:,|and|or|und|et|y|e|en|и|&|to|[-–])\s*(?={_NUMBER}\b))"
    listed = rf"(?P<numbers>{_NUMBER}(?:{more}{_NUMBER}){{0,5}})(?![\w%]|[.\-–]\d)"
    lettered = r"\d{1,2}(?:\.\d{1,3}){0,4}|[a-z](?:\.\d{1,2}){0,3}(?![\w'’])"
    line = (
        rf"^[\W_]{{0,20}}(?P<kind>(?i:{kinds}))\.?[ \t]*(?P<number>(?i:{_NUMBER}))(?![.\-–]?\d|\w)[*_]*[ \t]*"
        r"(?P<mark>[:.|—–-]|$|(?=[A-ZÀ-ÖØ-ÞА-ЯЁ(*_\"“]))(?P<rest>.{0,200})"
    )
    return _Patterns(
        re.compile(rf"(?P<kind>{kinds})\.?[ \t\n]{{1,2}}{listed}{_OF_ANOTHER}"),
        re.compile(rf"(?P<kind>{sections}|§)\.?[ \t\n]{{0,2}}(?P<numbers>{lettered})(?![\w%]|\.\d){_OF_ANOTHER}"),
        re.compile(
            rf"(?P<kind>{_any(WORDS['pages'])})[ \t\n]{{1,2}}(?P<numbers>\d{{1,4}}|[ivxl]{{1,6}})(?![\w%]|[.,]\d)"
            rf"(?!\s+of\s+\d){_OF_ANOTHER}"
        ),
        re.compile(_NEXT),
        re.compile(line, re.MULTILINE),
    )


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(set(words), key=lambda word: (-len(word), word)))


def references_in(text: str) -> list[Reference]:
    """What a page's text points at, each once, in order."""
    found: dict[Reference, None] = {}
    for reference in _all(text[:MOST_LETTERS]):
        found[reference] = None
        if len(found) >= MOST_ON_PAGE:
            break
    return list(found)


def _all(text: str) -> Iterator[Reference]:
    lower = text.lower()
    if len(lower) != len(text):  # a few letters of Turkish become two
        text = lower
    patterns = _patterns()
    for match in patterns.caption.finditer(lower):
        if _refers(text, match):
            kind = _groups()[match["kind"]]
            plural = match["kind"] != kind and match["kind"].endswith("s")
            yield from (Reference(kind, number) for number in _numbers(match["numbers"], ranges=plural))
    for match in patterns.section.finditer(lower):
        number = text[match.start("numbers") : match.end("numbers")]
        if match["kind"] == "§":
            refers = not text[match.end() : match.end() + 3].lstrip()[:1].isupper()  # § 12 BGB
        else:
            refers = match.end("kind") < match.start("numbers") and _refers(text, match)
        if refers and (number[0].isdigit() or number[0].isupper()):
            yield Reference(SECTION, number)
    for match in patterns.page.finditer(lower):
        if _word_before(text, match.start()) in WORDS["on"] or _word_before(text, match.start()) == "(":
            yield Reference(PAGE, match["numbers"])
    for match in patterns.step.finditer(lower):
        further = match["next"] or match["over"] or match["suivante"]
        yield Reference(STEP, "1" if further else "-1")


def _refers(text: str, match: re.Match[str]) -> bool:
    """Whether the sentence refers: by the word before, or by what follows."""
    start = match.start("kind")
    if start and (text[start - 1].isalnum() or text[start - 1] in "-_"):
        return False
    before, after = _word_before(text, start), _word_after(text, match.end())
    ends = not after[:1].isalpha()
    if before in ("(", "[", ";"):
        return ends or after in WORDS["verbs"]
    if text[start].islower():
        leads = before in WORDS["strong"] or (before in WORDS["articles"] and ends)
        return leads and (ends or after in WORDS["verbs"] or after in WORDS["small"])
    if before in WORDS["leads"] or after in WORDS["verbs"]:
        return True
    at_start = start == 0 or text[start - 1] == "\n"
    return not at_start and bool(before) and ends and after not in (":", "|")


_LAST_WORD = re.compile(r"(?:([^\W\d_]+)\.?|([^\w\s]))\s{0,3}$")
_FIRST_WORD = re.compile(r"\s{0,2}([^\W\d_]+|[^\w\s])")


def _word_before(text: str, at: int) -> str:
    found = _LAST_WORD.search(text[max(0, at - 20) : at])
    return (found[1] or found[2]).casefold() if found else ""


def _word_after(text: str, at: int) -> str:
    found = _FIRST_WORD.match(text, at)
    return found[1].casefold() if found else ""


def _numbers(listed: str, *, ranges: bool) -> list[str]:
    """ "3", "3 and 4", "Tables 3 to 5": each that is named, or lies between."""
    numbers = [number.replace("–", "-") for number in re.findall(_NUMBER, listed)]
    between = re.fullmatch(r"(\d{1,3})\s*(?:-|–|to)\s*(\d{1,3})", listed) if ranges else None
    if between and 0 < int(between[2]) - int(between[1]) <= _WIDEST:
        return [str(number) for number in range(int(between[1]), int(between[2]) + 1)]
    return numbers


@dataclass(frozen=True, slots=True)
class Targets:
    """Where the captions, sections and page numbers of a document are; what stands on several pages is on none."""

    captions: Mapping[tuple[str, str], frozenset[int]] = field(default_factory=dict)
    sections: Mapping[str, frozenset[int]] = field(default_factory=dict)
    labels: Mapping[str, frozenset[int]] = field(default_factory=dict)
    num_pages: int = 0

    def page(self, reference: Reference, at: int) -> int | None:
        """The one page that is meant, unless that is the one it stands on."""
        if reference.kind == STEP:
            pages = frozenset({at + int(reference.number)} & set(range(1, self.num_pages + 1)))
        elif reference.kind == PAGE:
            pages = self.labels.get(reference.number.casefold(), frozenset())
        elif reference.kind == SECTION:
            pages = self.sections.get(reference.number.casefold(), frozenset())
        else:
            pages = self.captions.get((reference.kind, reference.number.casefold()), frozenset())
        return next(iter(pages - {at}), None) if len(pages) == 1 else None


def targets_of(pages: Sequence[PageText], outline: Iterable[OutlineEntry]) -> Targets:
    captions: dict[tuple[str, str], set[int]] = {}
    for page in pages:
        for key in captions_of(page.markdown):
            captions.setdefault(key, set()).add(page.page)
    return Targets(
        {key: frozenset(found) for key, found in captions.items()},
        {key: frozenset(found) for key, found in _numbered_sections(outline).items()},
        {key: frozenset(found) for key, found in _labels(pages).items()},
        len(pages),
    )


_CONTINUED = re.compile(r"\W{0,3}(?:\(|\b)(?:continued|cont['’.]?d?\b|fortsetzung|suite\b|continuación)", re.IGNORECASE)
_LISTED = re.compile(r"\.\s?\.\s*\w{1,5}\s*$|[.…·]{3}|\s\d{1,4}\s*\|?\s*$")
_LEAST_LISTED = 3


def captions_of(markdown: str) -> list[tuple[str, str]]:
    """(kind, number) of the captions on a page; a list of figures has none."""
    lines = list(_patterns()[4].finditer(markdown[:MOST_LETTERS]))
    listed = [line for line in lines if _LISTED.search(line["rest"])]
    if len(listed) >= _LEAST_LISTED and len(listed) >= 0.7 * len(lines):
        return []
    found = dict.fromkeys(
        (_groups()[line["kind"].casefold()], line["number"].replace("–", "-").casefold())
        for line in lines
        if not _CONTINUED.match(line["rest"]) and not re.search(r"[.…·]\s?[.…·]\s?[.…·]", line["rest"])
    )
    return list(found)


_SECTION_NUMBER = re.compile(
    rf"(?:(?:{'|'.join(sorted(set(WORDS['sections'])))})\s+)?(\d{{1,2}}(?:\.\d{{1,3}}){{0,4}}|[A-Z](?:\.\d{{1,2}}){{0,3}})"
    r"(?:[.):—–-]+\s*|\s+|$)",
    re.IGNORECASE,
)


def _numbered_sections(outline: Iterable[OutlineEntry]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for entry in outline:
        match = _SECTION_NUMBER.match(entry.title)
        if match and (match[1].isdigit() or "." in match[1] or match[1].isupper()):
            found.setdefault(match[1].casefold(), set()).add(entry.page)
    return found


def _labels(pages: Sequence[PageText]) -> dict[str, set[int]]:
    """What "page 12" means: the label where the document has any, else the physical page."""
    labelled = any(page.label for page in pages)
    found: dict[str, set[int]] = {}
    for page in pages:
        label = page.label.casefold() if labelled else str(page.page)
        if label:
            found.setdefault(label, set()).add(page.page)
    return found
