"""Characters of a line."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from ingest.pdf.lines import clean_code, clean_text, is_rtl


def test_what_cannot_be_seen_goes() -> None:
    assert clean_text("a\x00b\x1b[31m\u200bc\u202ed\ufeff e\tf\u00a0g") == "ab[31mcd e f g"


def test_ligatures_bullets_and_composition() -> None:
    assert clean_text("e\ufb03cient \ufb01re e\u0301t\u00e9") == "efficient fire été"
    assert clean_text("\uf0b7 item") == "- item"


def test_code_keeps_its_spaces() -> None:
    assert clean_code("    if x:  # y\u00a0z") == "    if x:  # y z"


def test_direction() -> None:
    assert is_rtl("שלום עולם")
    assert not is_rtl("hello עולם there")


@given(st.text())
def test_clean_text_is_clean_whatever_comes(raw: str) -> None:
    text = clean_text(raw)
    assert clean_text(text) == text
    assert text == text.strip() and "  " not in text
    assert not any(unicodedata.category(char) in {"Cc", "Cs"} for char in text)
