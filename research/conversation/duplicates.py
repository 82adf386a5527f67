"""Whether two memories say the same. Cautious: what is joined wrongly is lost, what stays apart is found twice.

Equal are texts that differ in case, punctuation, articles and contractions alone (`digest`). Near are those whose
vectors are close and of which each says all that the other does (`say_the_same`): the same names, numbers and dates, as
often "no", the same persons, at the same time.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import TYPE_CHECKING

from research.memories import NewMemory

if TYPE_CHECKING:
    from research.answer.claims.statement import Reading

CLOSE = 0.9
"""The least cosine of two that may say the same."""

_ALIKE = 60.0  # of a hundred: the least that their words have in common, in any order
_CONTRACTIONS = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"\bcan['’]t\b|\bcannot\b", "can not"),
        (r"\bwon['’]t\b", "will not"),
        (r"\b(\w+)n['’]t\b", r"\1 not"),
        (r"\bi['’]m\b", "i am"),
        (r"\b(you|we|they)['’]re\b", r"\1 are"),
        (r"\b(i|you|we|they)['’]ve\b", r"\1 have"),
        (r"\b(i|you|he|she|it|we|they)['’]ll\b", r"\1 will"),
        (r"\b(he|she|it|that|there|what|who)['’]s\b", r"\1 is"),
    )
)
_FIGURES = re.compile(r"[^\sa-z]*[^\s\W_a-z]\S*|[^\w\s]+")  # what has anything but plain letters in it
_ARTICLES = frozenset({"a", "an", "the"})
# Figures as they stand, words with what joins their parts, and every sign but those that only end or divide.
_TOKEN = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:['’_-][^\W_]+)*|-(?=\d)|[^\s\w.,;:!?…\"“”„'’‘()\[\]*–—-]|\?$")
# Who does it, whether and when, and which way: words of these kinds must be the same ones.
_TELLING = re.compile(
    r"""\b(?:
    i|me|my|mine|you|yours?|he|him|his|she|hers?|its?|we|us|ours?|they|them|theirs?|who|whose|
    am|is|are|was|were|be|been|had|has|have|did|do|does|will|would|shall|should|can|could|may|might|must|used|
    not|no|never|none|nobody|nothing|without|except|but|if|unless|maybe|perhaps|only|also|too|
    still|already|yet|again|ago|since|until|before|after|during|now|then|today|yesterday|tomorrow|tonight|\w+day|
    first|last|next|former|formerly|previously|back|longer|anymore|always|often|sometimes|rarely|seldom|
    more|less|most|least|than|all|both|each|every|some|any|many|few|much|other|another|same|
    from|to|for|by|with|on|off|up|down|in|out|over|under|above|below|at|of|about|against|like|and|or
    )\b|\b\w{3,}ed\b""",
    re.VERBOSE,
)


def digest(new: NewMemory) -> str:
    """The same for memories that say the same in nearly the same words: by one speaker, of one kind."""
    whole = "\n".join((new.namespace, new.persona, new.type, new.speaker.casefold(), _folded(new.text)))
    return hashlib.sha256(whole.encode()).hexdigest()[:40]


def say_the_same(one: str, other: str) -> bool:
    """Whether each of two texts, whose vectors are close, says all that the other does."""
    from rapidfuzz import fuzz

    mine, theirs = _folded(one), _folded(other)
    if mine == theirs:
        return True
    alike = fuzz.token_sort_ratio(mine, theirs) >= _ALIKE
    if not alike or any(kind.findall(mine) != kind.findall(theirs) for kind in (_TELLING, _FIGURES)):
        return False
    from research.answer.claims.statement import read

    first, second = read(one), read(other)
    return _stated(first) == _stated(second) and _word_by_word(first, second)


def _folded(text: str) -> str:
    """Without case, punctuation, articles and contractions. Accents stay: Bär is another name than Bar."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    for pattern, plain in _CONTRACTIONS:
        folded = pattern.sub(plain, folded)
    found = _TOKEN.findall(folded)
    return " ".join([token for token in found if token not in _ARTICLES] or found or [folded])


def _stated(reading: Reading) -> tuple[object, ...]:
    """What two sentences for the same must have in common."""
    return (
        sorted((sorted(each.number.values), sorted(each.number.dates)) for each in reading.quantities),
        len(reading.negations),
        len(reading.plans),
        sorted(word.stem for word in reading.words if word.is_name),
        [bound for bound, _ in reading.bounds],
    )


def _word_by_word(first: Reading, second: Reading) -> bool:
    """The same words, or words for the same, in one order: Tim thanked Ann is not Ann thanked Tim."""
    return len(first.words) == len(second.words) and all(
        mine.text.casefold() == theirs.text.casefold() or (mine.keys & theirs.keys and not mine.is_name)
        for mine, theirs in zip(first.words, second.words, strict=True)
    )
