"""Rewriters are loaded only for questions that may concern them: the pieces of words that tell must cover all words."""

from __future__ import annotations

from itertools import chain

from research.search.collection import LANGUAGES
from research.search.rewriters import COLLECTION_HINTS


def test_every_word_for_documents_is_covered() -> None:
    words = chain.from_iterable(f"{each.documents}|{each.document}".split("|") for each in LANGUAGES.values())
    plain = {word for word in words if word.isascii() and word.isalpha()}
    assert {word for word in plain if not any(hint in word for hint in COLLECTION_HINTS)} <= {"doc"}
