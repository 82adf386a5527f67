"""Phrases that are said in many ways, put into one: "no more than", "up to" and "at most" become "≤".

Some of them hold a "no" that denies nothing, so this goes before negations are looked for.
"""

from __future__ import annotations

import re

CONTRARY = {"≤": ">≥", "≥": "<≤", ">": "<≤", "<": ">≥"}
"""A bound, and the bounds that contradict it."""

_CANNOT = r"(?:can(?:not| not)|(?:may|must|shall|should|will|could) not)"
_MORE = r"(?:more|longer|greater|higher|larger)"
_LESS = r"(?:less|fewer|shorter|lower|smaller|earlier)"
_IS = r"(?:went|go|goes|going|gone|is|are|was|were|been)"
_AMOUNT = (
    r"(?:[$€£¥]?\s?\d|(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty"
    r"|seventy|eighty|ninety|a hundred|a thousand)\b)"
)

_PHRASES = [
    (re.compile(pattern, re.IGNORECASE), said)
    for pattern, said in (
        (
            r"\bnot only\b(?=[^.]{0,200}\bbut\b)|\bwhether or not\b|\bno doubt\b|\bnot just\b|\bnot least\b|\bif not\b",
            " ",
        ),
        (
            r"\bfree of charge\b|\b(?:at no|without|no) (?:extra |additional )?(?:cost|charge)s?\b|\bfor free\b",
            " no cost ",
        ),
        (r"\b(\w+)-free\b", r" no \1 "),
        (rf"\b{_IS} up\b(?= (?:by )?\W?\d| from)", " increased "),
        (rf"\b{_IS} down\b(?= (?:by )?\W?\d| from)", " decreased "),
        (
            rf"\b{_CANNOT} (?:be )?{_MORE} than\b|\b{_CANNOT} exceed\b|\b(?:no|not) {_MORE} than\b"
            r"|\bnot (?:to )?exceed(?:ing)?\b"
            r"|\bat (?:the )?most\b|\bup to(?= (?:\S{1,3} )?\W?\w)|\bmaximum of\b|\bmax\.|\bno later than\b"
            r"|\b(?:höchstens|maximal|au plus|como máximo)\b",
            " ≤ ",
        ),
        (
            rf"\b(?:no|not) {_LESS} than\b|\bat (?:the )?(?:very )?least\b|\bminimum of\b"
            r"|\b(?:mindestens|wenigstens|au moins|al menos|como mínimo)\b",
            " ≥ ",
        ),
        (r"\bmore (\w+) than\b", r" > \1 "),
        (r"\bless (\w+) than\b", r" < \1 "),
        (
            r"\b(?:less|fewer|(?:short|low|small|earli|young|cool|cold|cheap|slow|weak|light)er) than\b"
            rf"|\b(?:under|below)(?= {_AMOUNT})",
            " < ",
        ),
        (
            r"\b(?:more|\w+er) than\b|\bin excess of\b"
            rf"|\b(?:over|above)(?= (?:\w+ ){{0,2}}?{_AMOUNT})|\bexceed(?:s|ed|ing)?(?= (?:\w+ ){{0,4}}?{_AMOUNT})",
            " > ",
        ),
        (r"\bnos?\.?(?=\s?\d)", "number "),
        (r"\bpercentage points?\b", " percentpoint "),
        (r"\b([A-Z])\. (?=[A-Z]\.)", r"\1."),
        (r"\bper ?cent\b|\bpct\b|%|％|\bprozent\b|\bpour ?cent\b|\bpor ciento\b|\bper cento\b", " percent "),
        (r"\b(?:can|wo|sha)(?:['’]t|n['’]t)\b|\bcan ?not\b", "can not"),
        (r"n['’]t\b", " not"),
        (r"['’]s\b|['’](?=\s)", " "),
    )
]


def in_one_way(text: str) -> str:
    for pattern, said in _PHRASES:
        text = pattern.sub(said, text)
    return text
