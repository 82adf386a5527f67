"""The shipped table of look-alikes is what Unicode's own data says."""

from __future__ import annotations

from string import ascii_letters

import pytest

from research.context.injection.words import TABLE, fold
from tools import build_tables


@pytest.mark.slow
def test_the_shipped_table_is_built_from_unicodes_data() -> None:
    assert TABLE.read_text(encoding="utf-8") == build_tables.rendered_confusables()


def test_it_says_where_it_comes_from() -> None:
    heading = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    assert any("security/13.0.0/confusables.txt" in line for line in heading)
    assert any("Unicode License V3" in line for line in heading)
    assert "UNICODE LICENSE V3" in TABLE.with_name("LICENSE").read_text(encoding="utf-8")


def test_what_unicode_calls_confusable_with_a_letter_reads_as_one() -> None:
    published = build_tables.published_confusables()
    alike = {
        other: letter
        for letter in ascii_letters
        for other in published[letter]
        if len(other) == 1 and not other.isascii()
    }
    wrong = {other: fold(other) for other, letter in alike.items() if fold(other) != letter.lower()}
    assert len(alike) > 1000
    # A few are numbers, and read as the number they are; a few have the shape of two letters.
    assert len(wrong) < len(alike) / 10, wrong
