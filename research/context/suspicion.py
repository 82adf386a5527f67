"""Pages that talk past their reader: to a model, or as if they were part of the context.

Nothing is removed. A source is marked with stable words, so that whoever hands it to a model can decide:

    forged_header      it imitates a citation header, in its text, title or file name
    addresses_model    it gives orders to a language model ("ignore previous instructions")
    chat_markup        it holds the marks that separate roles in a chat ("<|im_start|>")
    hidden_characters  it holds characters that no reader sees and a model may read

Phrases are chosen to be rare in ordinary writing, so a manual about prompts is seldom marked. What is not marked is
not thereby safe.
"""

from __future__ import annotations

import re
from functools import cache

from research.context.forgery import forges_header
from research.context.phrases import PHRASES

_CHAT_MARKUP = re.compile(
    r"<\| ?(?:im_(?:start|end|sep)|system|user|assistant|endof(?:text|prompt)|eot_id|(?:start|end)_header_id"
    r"|(?:begin|end)_of_text) ?\|>|<</?sys>>|\[/?inst\]|<(?:start|end)_of_turn>"
    r"|</?(?:system|assistant)[-_ ]?(?:prompt|message|reminder|instructions?)>"
)
# A dialogue is a script for a model only where the other voice is the assistant's.
_ASSISTANT = re.compile(r"^(?:#{1,6} ?)?assistant ?:", re.MULTILINE)
_OTHER_ROLE = re.compile(r"^(?:#{1,6} ?)?(?:system|user|human) ?:", re.MULTILINE)
# Overrides of direction, tag characters (text nobody sees), and runs of variation selectors that carry bytes.
_HIDDEN = re.compile(
    "[\u202d\u202e\U000e0001-\U000e007f]|[\u200b-\u200d\u2060-\u2064\ufeff]{4}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4}"
)
# Emphasis and marks that nobody sees do not keep a model from reading a phrase.
_DECORATION = re.compile("[*_`~\\\\\u00ad\u200b-\u200d\u2060\ufeff]+")


def signs_of(text: str, *, filename: str = "", title: str = "") -> list[str]:
    """The words for what makes a page suspicious, in a fixed order; none for nearly every page."""
    names = f"{filename}\n{title}"
    found = []
    if forges_header(text) or forges_header(names):
        found.append("forged_header")
    lowered = f"{text}\n{names.replace('_', ' ').replace('-', ' ')}".lower()
    if _addresses_model(" ".join(_DECORATION.sub("", lowered).split())):
        found.append("addresses_model")
    if _CHAT_MARKUP.search(lowered) or ("assistant" in lowered and _is_script(_DECORATION.sub("", lowered))):
        found.append("chat_markup")
    if not text.isascii() and _HIDDEN.search(text):
        found.append("hidden_characters")
    return found


def _addresses_model(lowered: str) -> bool:
    return any(
        any(word in lowered for word in words) and _compiled(pattern).search(lowered) is not None
        for words, pattern in PHRASES
    )


def _is_script(lowered: str) -> bool:
    return _ASSISTANT.search(lowered) is not None and _OTHER_ROLE.search(lowered) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
