"""Pages that talk past their reader: to a model, or as if they were part of the context.

Nothing is removed. A source is marked with stable words, so that whoever hands it to a model can decide:

    forged_header      it imitates a citation header, in its text, title or file name
    addresses_model    it gives orders to a language model ("ignore previous instructions")
    chat_markup        it holds the marks that separate roles in a chat ("<|im_start|>")
    hidden_characters  it holds characters that no reader sees and a model may read

One telling word is no mark, a combination is, so a manual about prompts is seldom marked. What is not marked is not
thereby safe.
"""

from __future__ import annotations

import re

from research.context.forgery import forges_header
from research.context.injection.detector import gives_orders
from research.context.injection.markup import has_chat_markup, has_leaking_image

# Overrides of direction, tag characters (text nobody sees), and runs of variation selectors that carry bytes.
_HIDDEN = re.compile(
    "[\u202d\u202e\U000e0001-\U000e007f]|[\u200b-\u200d\u2060-\u2064\ufeff]{4}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4}"
)


def signs_of(text: str, *, filename: str = "", title: str = "") -> list[str]:
    """The words for what makes a page suspicious, in a fixed order; none for nearly every page."""
    names = f"{filename}\n{title}"
    whole = f"{text}\n\n{names.replace('_', ' ').replace('-', ' ')}"
    found = []
    if forges_header(text) or forges_header(names):
        found.append("forged_header")
    if gives_orders(whole) or has_leaking_image(text):
        found.append("addresses_model")
    if has_chat_markup(whole.lower()):
        found.append("chat_markup")
    if not text.isascii() and _HIDDEN.search(text):
        found.append("hidden_characters")
    return found
