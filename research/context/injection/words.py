"""From text to the classes of its words: one symbol a word, so that rules can be regular expressions over words."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

from research.context.injection.folding import fold

CLASSES: dict[str, str] = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8"))
OTHER = "-"  # a word of no class
LETTER = "."  # a letter by itself
BREAK = "|"  # the end of a sentence
LINK = "@"
MARKS = {"colon": ":", "comma": ",", "quote": '"', "link": LINK, "number": "#"}

_NUMBERS = {name: number for number, name in enumerate((*CLASSES, *MARKS))}
_FIRST_SYMBOL = 0xE000  # private use: no symbol is ever mistaken for anything else
_UNSPACED = ("\u3040", "\ud7a3")  # from Kana to Hangul: scripts whose words run on without blanks
_TOKEN = re.compile(r"\w+|\n\s*\n|\n(?=\s*[#>*|-])|[.!?](?=\s|$|[\"')\]*])|[;|:,(\"\[]|\B'\b")
# Other marks as these; in the pattern itself they would make it slow to compile.
_ASCII = {**dict.fromkeys("“”„«»「」『』", '"'), **dict.fromkeys("。！？…", ";"), "、": ","}
# An address, of a page or of a person, is one word.
_LINK_SIGNS = ("://", "www.", "@", ".com", ".net", ".org", ".io", ".example")
_LINK = (
    r"(?:https?://|www\.)\S+|(?<![\w.+-])[\w.+-]{1,80}@[\w-]{1,80}\.\w+"
    r"|(?<![\w.-])[\w-]{1,63}(?:\.[\w-]{1,63}){0,3}\.(?:com|net|org|io|example)\b\S*"
)
_LINK_WORD = "0link0"
_PUNCTUATION = {
    **dict.fromkeys(".!?;|", BREAK),
    **dict.fromkeys("\"'", '"'),
    **dict.fromkeys("([", "("),
    ":": ":",
    ",": ",",
    _LINK_WORD: LINK,
}
_LEET = str.maketrans("013457", "oieast")
_MOST_TOKENS, _LONGEST_KEPT = 1 << 16, 64
_LONG = 14  # a word this long may be several, run together; these are worth taking it apart for
_SOUGHT = ("instruction", "prompt", "ignore", "disregard", "override")
_SHORTEST_PREFIX, _SHORTEST_JUMBLED = 3, 6
_JUMBLED = ("override", "earlier", "instruction", "rule", "reveal", "prompt")  # read in any order of letters


@dataclass
class _Lexicon:
    """The classes, laid out for looking up. A word of several classes has a symbol of its own."""

    words: dict[str, str] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)
    phrases: dict[tuple[str, str], list[tuple[list[str], str]]] = field(default_factory=dict)  # by two words
    jumbled: dict[str, str] = field(default_factory=dict)  # by first letter, sorted letters, last letter
    kinds: dict[str, int] = field(default_factory=dict)  # symbol → its classes, a bit each
    longest: int = 0  # of the prefixes; a "word" may be a whole page of digits


def symbols(text: str) -> str:
    """The classes of a folded text's words, a symbol each; sentences are parted by breaks."""
    phrases = _lexicon().phrases
    if any(sign in text for sign in _LINK_SIGNS):
        text = re.sub(_LINK, _LINK_WORD, text)
    if not text.isascii():
        for mark, ascii_mark in _ASCII.items():
            text = text.replace(mark, ascii_mark)
    tokens = _TOKEN.findall(text.replace("_", " "))
    found = list(map(_SYMBOLS.__getitem__, tokens))
    for at, pair in enumerate(pairwise(tokens)):
        if pair in phrases and found[at]:
            for rest, symbol in phrases[pair]:
                end = at + 2 + len(rest)
                if tokens[at + 2 : end] == rest:
                    found[at:end] = [symbol, *[""] * (len(rest) + 1)]
                    break
    return "".join(found)


def kinds_of(line: str) -> int:
    """The classes of the words in a line of symbols, a bit each."""
    kinds, found = _lexicon().kinds, 0
    for symbol in set(line):
        found |= kinds.get(symbol, 0)
    return found


def kind(name: str) -> int:
    """The bit of a class."""
    return 1 << _NUMBERS[name]


@cache
def class_symbols() -> dict[str, str]:
    """Class → every symbol that stands for a word of it."""
    found = dict.fromkeys(_NUMBERS, "")
    for symbol, kinds in _lexicon().kinds.items():
        for name, number in _NUMBERS.items():
            if kinds >> number & 1:
                found[name] += symbol
    return found


class _Symbols(dict[str, str]):
    """token → its symbols, worked out once a token: words repeat, and this is the quickest way to look one up."""

    def __missing__(self, token: str) -> str:
        found = _symbols_of(token)
        if len(self) > _MOST_TOKENS:
            self.clear()
        if len(token) <= _LONGEST_KEPT:
            self[token] = found
        return found


_SYMBOLS = _Symbols()


def _symbols_of(token: str) -> str:
    lexicon = _lexicon()
    known = lexicon.words.get(token) or _PUNCTUATION.get(token) or (BREAK if token[0] == "\n" else "")
    if known:
        return known
    if _is_unspaced(token):
        return _taken_apart(token, _unspaced_words())
    if token.isdigit():
        return MARKS["number"]
    if len(token) == 1:
        return LETTER
    return _symbol_of_word(token) or (_taken_apart(token, _spaced_words()) if _is_run_together(token) else OTHER)


def _symbol_of_word(token: str) -> str:
    """The symbol of a word that is inflected, or spelt with digits, or jumbled so that it still reads the same."""
    lexicon = _lexicon()
    for length in range(min(len(token), lexicon.longest), _SHORTEST_PREFIX, -1):
        if token[:length] in lexicon.prefixes:
            return lexicon.prefixes[token[:length]]
    if not token.isalpha() and not token.isdigit() and token.isascii():
        plain = token.translate(_LEET)
        return lexicon.words.get(plain, "") or lexicon.words.get(plain.replace("i", "l"), "")
    if len(token) >= _SHORTEST_JUMBLED and token.isascii():
        return lexicon.jumbled.get(_jumbled(token), "")
    return ""


def _is_run_together(token: str) -> bool:
    return len(token) >= _LONG and any(word in token for word in _SOUGHT)


def _taken_apart(token: str, words: re.Pattern[str]) -> str:
    """The symbols of the words in a run; what lies between two of them counts as one."""
    found, end = [], 0
    for match in words.finditer(token):
        if match.start() > end:
            found.append(OTHER)
        found.append(_lexicon().words[match[0]])
        end = match.end()
    return "".join(found) + (OTHER if end < len(token) else "")


def _is_unspaced(word: str) -> bool:
    return not word.isascii() and any(_UNSPACED[0] <= character <= _UNSPACED[1] for character in word)


@cache
def _unspaced_words() -> re.Pattern[str]:
    return _any_of([word for word in _lexicon().words if _is_unspaced(word)])


@cache
def _spaced_words() -> re.Pattern[str]:
    return _any_of([word for word in _lexicon().words if word.isascii() and len(word) > 2])


def _any_of(words: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))


def _jumbled(word: str) -> str:
    return word[0] + "".join(sorted(word[1:-1])) + word[-1]


@cache
def _lexicon() -> _Lexicon:
    classes: dict[str, int] = {}
    folded = fold("\f".join(CLASSES.values())).split("\f")
    for number, entries in enumerate(folded):
        for entry in entries.split():
            classes[entry] = classes.get(entry, 0) | 1 << number
    jumbled = sum(1 << number for number, name in enumerate(CLASSES) if name in _JUMBLED)
    found, known = _Lexicon(), dict[int, str]()
    for entry, kinds in classes.items():
        symbol = known.setdefault(kinds, chr(_FIRST_SYMBOL + len(known)))
        _enter(found, entry, symbol)
        if kinds & jumbled and len(entry) >= _SHORTEST_JUMBLED and entry.isascii():
            found.jumbled.setdefault(_jumbled(entry), symbol)
    found.kinds.update((symbol, kinds) for kinds, symbol in known.items())
    found.kinds.update((mark, kind(name)) for name, mark in MARKS.items())
    for phrases in found.phrases.values():
        phrases.sort(key=lambda phrase: -len(phrase[0]))
    return found


def _enter(lexicon: _Lexicon, entry: str, symbol: str) -> None:
    if entry.endswith("*"):
        lexicon.prefixes[entry[:-1]] = symbol
        lexicon.longest = max(lexicon.longest, len(entry) - 1)
    elif "_" in entry:
        first, second, *rest = entry.split("_")
        lexicon.phrases.setdefault((first, second), []).append((rest, symbol))
    else:
        lexicon.words[entry] = symbol
