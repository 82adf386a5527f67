"""Sentences that run on over a page break: the end of one stands on the next page, and joins the passage it belongs to.

    … which the committee [→ page 4] rejected in March.

The header above keeps the first page; the mark tells from where the text is the next one's, and `pages` names both.
A page's own text cannot show such a mark (`escape.page_text`).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from research.context.escape import page_text
from research.models import Item, Passage
from research.store import page_markdown
from research.text import UNSPACED
from research.units import Unit, iter_units

if TYPE_CHECKING:
    from research.store import Reader

_MOST = 600  # characters of the next page: a sentence that does not end there is cut
_GOES_ON = ",-–—&(/"
_BEGINS_WORD = re.compile(r"[\"'“‘«(]?(\w)")


def page_mark(page: int) -> str:
    """Stands where the text goes over to this page."""
    return f"[→ page {page}]"


def continuation(item: Item) -> str:
    """What follows the page's last sentence, with its mark, if one of the passages runs on over the page break."""
    for passage in item.passages:
        if len(passage.pages) > 1:
            return passage.text[passage.end - passage.start :]
    return ""


def join_page_breaks(reader: Reader, items: Sequence[Item]) -> list[Item]:
    """The items, with the end of the sentence from the next page where a passage runs on over a page break."""
    joined = list(items)
    for place, item in enumerate(items):
        end = len(item.text.rstrip())
        last = {passage for passage in item.passages if passage.end >= end > passage.start}
        if item.ref.kind != "page" or not last:
            continue
        page = int(item.ref.part)
        following = _without_running_head(page_markdown(reader, item.ref.key, page + 1) or "", item.text)
        if rest := _rest(item.text, following):
            passages = [_over(each, item.text, page, rest) if each in last else each for each in item.passages]
            joined[place] = replace(item, passages=tuple(passages))
    return joined


def _without_running_head(following: str, text: str) -> str:
    """The next page without a first line that both begin with: a chapter's name, which is no text."""
    head, _, rest = following.lstrip().partition("\n")
    return rest if head and head.strip() == text.lstrip().partition("\n")[0].strip() else following


def _over(passage: Passage, text: str, page: int, rest: str) -> Passage:
    here = text[passage.start : passage.end].rstrip()
    joined = f"{here} {page_mark(page + 1)} {page_text(rest)}"
    return replace(passage, text=joined, end=passage.start + len(here), pages=(page, page + 1))


def _rest(text: str, following: str) -> str:
    """The beginning of the next page, to its first sentence end, if the last sentence of this one goes on there."""
    begin = following[: 4 * _MOST]
    first = next(iter_units(begin), None)
    if first is None or first.kind not in {"sentence", "line"} or not _runs_on(text, begin[first.start :]):
        return ""
    # Only a sentence goes on; a label or a row at the foot of a page does not.
    last = [unit.kind for unit in deque(iter_units(text), maxlen=1)]
    return _cut(begin, first) if last and last[0] in {"sentence", "item"} else ""


def _runs_on(text: str, following: str) -> bool:
    """A small letter goes on with what stands before it. Without one, the end of the page must show it: a comma, a
    dash, or, in scripts without capitals, a letter where a full stop is usual."""
    word = _BEGINS_WORD.match(following)
    if word is None:
        return False
    if word[1].islower():
        return True
    last = text.rstrip()[-1:]
    return last != "" and (last in _GOES_ON or re.match(f"[{UNSPACED}]", last) is not None)


def _cut(text: str, unit: Unit) -> str:
    rest = text[unit.start : unit.end]
    if len(rest) <= _MOST:
        return rest
    blank = rest.rfind(" ", _MOST // 2, _MOST)
    return f"{rest[: blank if blank > 0 else _MOST]} […]"
