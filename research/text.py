"""What holds for text in any language: where sentences end, which scripts are written without blanks, and what of a
passage an encoder is given."""

from __future__ import annotations

import re

END_MARKS = ".!?…"  # a blank or a line's end follows, or this was an abbreviation or a number
WIDE_END_MARKS = "。！？"  # of Chinese and Japanese; the next sentence follows at once
CLOSING_MARKS = "\"')\\]»”’"  # may stand between a sentence's last mark and the blank; escaped for use in [ ]
_WIDE_CLOSING_MARKS = f"{CLOSING_MARKS}」』）"

SENTENCE_BREAK = re.compile(
    rf"(?:(?<=[{END_MARKS}])|(?<=[{END_MARKS}][{CLOSING_MARKS}]))\s+"
    rf"|(?:(?<=[{WIDE_END_MARKS}])(?![{_WIDE_CLOSING_MARKS}])|(?<=[{WIDE_END_MARKS}][{_WIDE_CLOSING_MARKS}]))\s*"
)
"""What stands between two sentences: the blanks, or nothing after 。！？. Begins where the sentence before ends."""

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3040-\u30ff\u31f0-\u31ff"
_HANGUL = "\uac00-\ud7af"
_SOUTH_EAST_ASIAN = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
_WIDE_SIGNS = "\u2e80-\u2fdf\u3001-\u303f\u3100-\u312f\u31a0-\u31ff\uff00-\uffef"  # radicals, punctuation, Bopomofo

UNSPACED = f"{_SOUTH_EAST_ASIAN}{_KANA}{_HAN}{_HANGUL}"
"""Ranges, for use in [ ], of the scripts whose words are not found by blanks; full-text search takes pairs of their
characters. Korean has blanks, but endings grow onto its words."""

_JOINED = re.compile(f"[{_HAN}{_KANA}{_WIDE_SIGNS}]")


def is_joined_script(char: str) -> bool:
    """Whether lines of this character's script are put together without a blank: Han, Kana, and their punctuation.

    Not all of `UNSPACED`: Korean puts blanks between words, Thai and its neighbours between phrases.
    """
    return bool(_JOINED.match(char))


def embedding_text(context: str, text: str) -> str:
    """What an encoder is given for a passage, and what its tokens are counted on: title and section, then the text."""
    return f"{context}\n{text}" if context else text
