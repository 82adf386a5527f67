"""Which language a text is in, as far as its script and commonest words tell: an answer may be in another one than its
sources."""

from __future__ import annotations

import re
from collections import Counter

_COMMONEST = {
    "en": "the of and to in is that for it with as was on are by be this at from or which not",
    "de": "der die das und ist von mit den dem des zu ein eine nicht für auf im sind wird werden bei oder einer",
    "fr": "le la les des et est une du dans pour qui que par sur avec au aux pas sont ce cette ou il elle",
    "es": "el la los las y es una del para por con que en se su como más al son o este esta",
    "it": "il lo gli della del di che è una per con non sono nel alla dei delle si come o questo",
    "nl": "de het een van en is in op te dat voor met zijn niet aan door ook worden bij of naar",
    "pt": "o os as e do da dos das em um uma para com não que por é são no na ao mais ou",
}
_WORDS = {
    word: [name for name, words in _COMMONEST.items() if word in words.split()]
    for words in _COMMONEST.values()
    for word in words.split()
}
_LETTERS = re.compile(r"[^\W\d_]+")
_SCRIPTS = (
    ("cjk", re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")),
    ("hangul", re.compile("[\uac00-\ud7af]")),
    ("cyrillic", re.compile("[\u0400-\u04ff]")),
    ("greek", re.compile("[\u0370-\u03ff]{3}")),
    ("arabic", re.compile("[\u0600-\u06ff]")),
    ("hebrew", re.compile("[\u0590-\u05ff]")),
    ("devanagari", re.compile("[\u0900-\u097f]")),
    ("thai", re.compile("[\u0e00-\u0e7f]")),
)
_READ = 4000  # characters that are looked at
_SURE = 2  # common words, and more than of any other language


def language_of(text: str) -> str:
    """A language or a script, or "" if the text does not tell."""
    text = text[:_READ]
    letters = sum(map(str.isalpha, text))
    for script, pattern in _SCRIPTS:
        if 3 * len(pattern.findall(text)) > letters > 0:
            return script
    counts = Counter(name for word in _LETTERS.findall(text.lower()) for name in _WORDS.get(word, ()))
    ranked = counts.most_common(2)
    if not ranked or ranked[0][1] < _SURE or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return ""
    return ranked[0][0]
