"""Leaves out of the search what a question says about the form of its answer.

"… Round your answer to two decimal places." says how to answer, not what to look for; its words would lead to pages
with decimal places. A sentence goes only if it is unmistakable: an order, no question, and made of nothing but words
about form. One word about anything else keeps it: "The answer filed by the defendant", "Round 3 leader?", "State the
notice period in the format clause 4 requires" are about documents.

"If that is not a useful metric, then state that." goes as well, where the rest of the question holds every word of it
that is not about the question itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from research.models import Rewrite
from research.store import STOP_WORDS

NAME = "answer-form"

_SENTENCE_END = re.compile(r"(?<=[?!])\s+|(?<=[\w)]\?)(?=[A-Z][a-z]+\s)|(?<=\.)\s+(?=[\"“(\[]*[A-Z])")
# Somebody's example of an answer: ['Page 2', 'Page 4'], {"total": 3}, "12.5".
_EXAMPLE = re.compile(r"\[[^\]]*\]|\{[^}]*\}|\"[^\"]*\"|“[^”]*”|'[^']*'")
_WORD = re.compile(r"[^\W\d_]+|\d+")

_POLITE = frozenset("please kindly also then just and".split())  # noqa: SIM905
_VERBS = frozenset(
    "answer round give write return provide express state report respond reply present output format".split()  # noqa: SIM905
)
# What the order must be about, or it may be about anything: "Give a list." can mean a list in the document.
_SUBJECTS = frozenset("answer answers response responses result results it decimal decimals place json".split())  # noqa: SIM905
_FORMS = frozenset(
    """
    json yaml csv xml markdown html text plain integer integers int float floats string number numbers numeric digit
    digits decimal decimals place places point points percent percentage percentages term terms thousand thousands
    million millions billion billions usd eur gbp dollar dollars euro euros unit units nearest whole significant
    list bullet bullets table sentence sentences word words paragraph paragraphs line lines page pages format style
    short brief briefly concise concisely english
    """.split()  # noqa: SIM905
)
_SMALL = frozenset(
    """
    a an the your my final in as to up with of or at most least no more than only using use like such for following
    down off out each be one two three four five six seven eight nine ten first
    """.split()  # noqa: SIM905
)
_KNOWN = _POLITE | _VERBS | _SUBJECTS | _FORMS | _SMALL
_UNLESS = re.compile(r"if\b(?P<doubt>.*?)\b(?:then |please )*(?:state|say) (?:that|so)(?: and (?:explain )?why)?")
_JUDGING = frozenset("useful relevant meaningful applicable appropriate".split())  # noqa: SIM905
_DOUBTFUL = (
    STOP_WORDS | _JUDGING | frozenset("question metric measure figure company firm business organisation like".split())  # noqa: SIM905
)


def without_form(question: str) -> Rewrite | None:
    """The question without the sentences that are only about form; None if it has none, or nothing else."""
    sentences = _SENTENCE_END.split(question)
    kept = [sentence for sentence in sentences if not _is_about_form(sentence)]
    kept = [sentence for sentence in kept if not _is_a_doubt(sentence, kept)]
    if not kept or len(kept) == len(sentences):
        return None
    dropped = len(sentences) - len(kept)
    why = f"left out {dropped} sentence{'s' * (dropped > 1)} about the form of the answer"
    return Rewrite(NAME, question, " ".join(kept), why)


def _is_about_form(sentence: str) -> bool:
    """Whether a sentence asks for a form of the answer and for nothing else."""
    if "?" in sentence:
        return False
    words = _words(_EXAMPLE.sub(" ", sentence))
    while words and words[0] in _POLITE:
        del words[0]
    if not words or words[0] not in _VERBS:
        return False
    if any(word not in _KNOWN and not word.isdecimal() for word in words):
        return False
    # "Round to 2 places", "Answer in millions", "Write the answer in int format".
    about = words[0] in ("answer", "round", "respond", "reply") or not _SUBJECTS.isdisjoint(words[1:])
    return about and not _FORMS.isdisjoint(words[1:])


def _is_a_doubt(sentence: str, sentences: Sequence[str]) -> bool:
    """Whether a sentence only says what to answer if the rest of the question makes no sense."""
    found = None if "?" in sentence else _UNLESS.fullmatch(" ".join(_words(sentence)))
    if found is None:
        return False
    doubt = set(found["doubt"].split())
    if doubt == {"not"}:
        return True
    elsewhere = {word for other in sentences if other is not sentence for word in _words(other)}
    return not _JUDGING.isdisjoint(doubt) and doubt <= _DOUBTFUL | elsewhere


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]
