"""Lines in the margin, whatever they are written in: they may be left out, and never break the reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.pdf.document import DocumentStats, HeadersFooters
from ingest.pdf.lines import Line, RawPage
from research.records import Page

# Letters that are longer in another case, look-alikes of Roman numerals, digits of other scripts, no letters at all.
TROUBLESOME = ["İ", "ı", "İİ", "ß", "ŉ", "ﬁ", "ſ", "K", "Ⅳ", "ⅳ", "ⅰ", "٣", "١٢", "三", "²", "½", "🙂", "ẋ", "ǰ", "ΐ"]


def _page(number: int, texts: list[str], label: str = "") -> RawPage:
    """A page with the texts at its upper edge, one under the other, and the last at its lower edge as well."""
    lines = [
        Line(text, 72.0, 20.0 + 12 * n, 90.0, 30.0 + 12 * n, 10.0, False, False, 0, True)
        for n, text in enumerate(texts)
    ]
    lines += [Line(text, 72.0, 780.0, 90.0, 790.0, 10.0, False, False, 1, True) for text in texts[-1:]]
    return RawPage(number, 595.0, 842.0, label, rotated=False, lines=tuple(lines), pictures=(), ruled=False)


# Short texts of the characters that page numbers are made of, and of those that look like them.
_NUMERALS = st.text(alphabet="ivxlcIVXLCİıⅠⅳ0123456789٣-–|[]() pageofPAGE./", max_size=12)


@given(
    st.lists(
        st.lists(st.one_of(_NUMERALS, st.sampled_from(TROUBLESOME), st.text(max_size=60)), max_size=6), max_size=5
    ),
    st.text(max_size=5),
)
def test_no_text_breaks_the_margins(pages: list[list[str]], label: str) -> None:
    margins, stats = HeadersFooters(), DocumentStats()
    made = [_page(number, texts, label) for number, texts in enumerate(pages, start=1)]
    for page in made:
        margins.add(page)
        stats.add(page)
    for page in made:
        assert set(map(id, margins.without(page))) <= set(map(id, page.lines))


@pytest.mark.parametrize(("text", "value"), [("iv", 4), ("IV", 4), ("Page 12", 12), ("٣", 3), ("xii", 12)])
def test_page_numbers_are_still_known(text: str, value: int) -> None:
    margins = HeadersFooters()
    page = _page(value, [text, "Some text of the page", "and more of it"])
    margins.add(page)
    assert text not in [line.text for line in margins.without(page)]


@pytest.mark.parametrize("first", [1, 3])
def test_a_mark_of_classification_stays_on_the_first_page_that_has_it(first: int) -> None:
    margins = HeadersFooters()
    pages = [
        _page(
            number,
            ["Quarterly report", *(["Strictly confidential"] if number >= first else []), "abcdefghi"[number] * 9],
        )
        for number in range(1, 9)
    ]
    for page in pages:
        margins.add(page)
    kept = [[line.text for line in margins.without(page)] for page in pages]
    assert [number for number, lines in enumerate(kept, 1) if "Strictly confidential" in lines] == [first]
    assert not any("Quarterly report" in lines for lines in kept[1:])


Read = Callable[..., list[Page]]


_CMAP = """/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Any def /CMapType 2 def
1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfchar <41> <{}> endbfchar endcmap end end"""


def _add_page(document: Any, top: str, text: str) -> None:
    """A page with one glyph at its top, of which the file says that it stands for `top`, whatever that is."""
    page = document.new_page()
    page.insert_text((72, 40), "A", fontname="tiro")
    xref = document.get_new_xref()
    document.update_object(xref, "<<>>")
    document.update_stream(xref, _CMAP.format(top.encode("utf-16-be", "surrogatepass").hex()).encode())
    document.xref_set_key(page.get_fonts()[0][0], "ToUnicode", f"{xref} 0 R")
    page.insert_text((72, 200), text)


def test_troublesome_characters_in_a_real_file(read: Read) -> None:
    def draw(document: Any) -> None:
        for text in (*TROUBLESOME, "\ud800", "a\udfffb"):  # halves of characters, too
            _add_page(document, text, "The text of the page stands here.")

    pages = read(draw)
    assert {page.error for page in pages} == {""}
    assert all("The text of the page stands here." in page.markdown for page in pages)
