"""Places that a question names: "page 12", "slides 3 to 5", "the cover page", "Figure 4", "Table 3-1"."""

from __future__ import annotations

import re
from dataclasses import dataclass

LAST = -1
"""The number of a document's last page, whatever it is."""

# "pages 3 to 90" names no page in particular.
_MOST_PAGES = 12

_WORDS = """
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty
""".split()  # noqa: SIM905
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()  # noqa: SIM905
_NUMBER = rf"(?:\d{{1,4}}|{'|'.join(_WORDS)})\b"
_NEXT = r"(?:pages?\s*|slides?\s*)?"
_TO = r"\s*(?:-|–|—|to\b|through\b)\s*"
_AND = r"\s*(?:,\s*and\b|,\s*or\b|,|&|and\b|or\b)\s*"
# Patterns are compiled with the first question that may need them; most name no place, and a cold start is dear.
# A quotation mark before it is somebody's example of an answer: list them like ['Page 2', 'Page 4'].
_PAGES = (
    rf"(?i)(?<!['\"“‘])\b(?:pages?|pgs?\.?|pp?\.|slides?)\s*(?:no\.|number\b|\#)?\s*"
    rf"(?P<numbers>{_NUMBER}(?:(?:{_TO}|{_AND}){_NEXT}{_NUMBER})*)"
)
_SPAN = rf"(?i)(?P<first>{_NUMBER})(?:{_TO}{_NEXT}(?P<last>{_NUMBER}))?"
_NTH = (
    rf"(?i)\b(?:(?P<digits>\d{{1,3}})(?:st|nd|rd|th)|(?P<word>{'|'.join(_ORDINALS)})|(?P<front>cover|title|front)"
    r"|(?P<last>last|final))\s+(?:page|slide)\b"
)
_KINDS = ("figure", "fig", "table", "chart", "exhibit", "box", "diagram", "listing", "algorithm")
_CAPTION = rf"(?i)\b(?P<kind>{'|'.join(_KINDS)})\.?\s*(?P<number>\d+(?:[.\-–]\d+)*)\b"
_HINTS = ("page", "slide", "p.", "pg", *_KINDS)


@dataclass(frozen=True, slots=True)
class Caption:
    kind: str  # "figure", in lower case
    number: str  # "4", "3-1"


@dataclass(frozen=True, slots=True)
class Places:
    """What a question points at: page numbers, printed or physical, and numbered figures and the like."""

    pages: tuple[int, ...] = ()
    captions: tuple[Caption, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pages or self.captions)


def places_in(question: str) -> Places:
    lower = question.lower()
    if not any(hint in lower for hint in _HINTS):
        return Places()
    pages: dict[int, None] = {}
    for named in re.finditer(_PAGES, question):
        for span in re.finditer(_SPAN, named["numbers"]):
            first = _number(span["first"])
            last = _number(span["last"]) if span["last"] else first
            pages.update(dict.fromkeys(range(first, min(last, first + _MOST_PAGES) + 1)))
    pages.update(dict.fromkeys(_nth(match) for match in re.finditer(_NTH, question)))
    captions = dict.fromkeys(
        Caption(match["kind"].lower(), match["number"]) for match in re.finditer(_CAPTION, question)
    )
    return Places(tuple(pages) if len(pages) <= _MOST_PAGES else (), tuple(captions))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else _WORDS.index(text.lower()) + 1


def _nth(match: re.Match[str]) -> int:
    if match["digits"]:
        return int(match["digits"])
    if match["word"]:
        return _ORDINALS.index(match["word"].lower()) + 1
    return 1 if match["front"] else LAST
