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
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from research.context.injection.headers import forges_header
from research.context.injection.words import (
    BREAK,
    IGNORED,
    LETTER,
    class_symbols,
    decoded,
    fold,
    joined,
    kind,
    kinds_of,
    symbols,
)

BEGIN = "!"
_NEAR = 40  # words within which points add up
_SHORT = 24  # words of a sentence in which the order of words is left open
_IN_CAPITALS = ("AI", "A.I", "KI", "IA", "ИИ", "DAN")  # in small letters these are words of other languages
_NAMES = r"\b(?:A\.?I|KI|IA|ИИ|DAN)\b\.?"
_UNSEEN = (IGNORED, "*", "`", "~", "\\")
_FIRST_PICTURE, _PICTURES = "\U0001f000", "[\U0001f000-\U0001faff]+"  # between letters they part no word
_PARTS = re.compile(r"[()]|<[a-z ]+>\??")
_COMPANY, _COMPANIONS = "&", re.compile(r"@?<[a-z ]+>(?:\|@?<[a-z ]+>)*")
_PLACEHOLDER = re.compile(r"<([a-z ]+)>|~(\d+)|@")

# Overrides of direction, tag characters (text nobody sees), and runs of variation selectors that carry bytes.
_HIDDEN = re.compile(
    "[\u202d\u202e\U000e0001-\U000e007f]|[\u200b-\u200d\u2060-\u2064\ufeff]{4}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4}"
)

# Marks of a chat. Patterns are compiled with the first page that may need them; most do not, and a cold start is dear.
_ROLE = r"(?:system|assistant|developer|user|human)"
_WRAPPER = (
    r"(?:context|documents?|data|sources?|(?:user_?|tool_?)?(?:input|output|message|query|result)s?|untrusted[-_\w]*"
    r"|retrieved[-_\w]*|transcript|search_?results?|content|text|passage|excerpt|instructions?|prompt)"
)
_TOKENS = (
    r"<\| ?(?:im_(?:start|end|sep)|system|user|assistant|endof(?:text|prompt)|eot_id|(?:start|end)_header_id"
    r"|(?:begin|end)_of_text|end_of_turn|channel|message) ?\|>"
    r"|<</?sys>>|\[/?(?:inst|system_prompt)\]|<(?:start|end)_of_turn>"
    r"|</?(?:system|assistant)[-_ ]?(?:prompt|message|reminder|instructions?)>"
    rf"|</{_WRAPPER}>\s*(?:</\w+>\s*)*(?:<{_ROLE}>|<(?:new_?)?instructions?>|[#*\[]*{_ROLE}\]?\**\s*:)"
    rf"|<(?:system|assistant)>[^<]{{1,400}}</(?:system|assistant)>"
)
_ROLE_IN_JSON = r"[\"']role[\"']\s*:\s*[\"'](?:system|developer|assistant)[\"']\s*,\s*[\"']content[\"']\s*:"
_FENCE = r"(?m)^```(?:system|assistant|system_prompt)\s*$"
# A dialogue is a script for a model only where the other voice is the assistant's.
_ASSISTANT = r"(?m)^(?:#{1,6} ?)?assistant ?:"
_OTHER_ROLE = r"(?m)^(?:#{1,6} ?)?(?:system|user|human) ?:"
_EMPHASIS = "[*_`~\\\\\u00ad\u200b-\u200d\u2060\ufeff]+"
# An image that is fetched with what the model fills in.
_IMAGE = r"!\[[^\]\n]*\]\(\s*https?:/[^)\s]*[?=/][^)\s]*(?:\[[^)]*\]|\{[^)]*\}|<[^)>]*>|%7b|%5b|\$\w+)"


VERSION = 2
"""The version of all these rules. Signals that other rules have found are found anew when a page is read."""

_SIGNALS = ("forged_header", "addresses_model", "chat_markup", "hidden_characters")


class Rule(NamedTuple):
    weight: int
    pattern: str


_TABLE = tomllib.loads(Path(__file__).with_name("rules.toml").read_text("utf-8"))
_STARTS: str = _TABLE["starts"]
_DESCRIPTIONS: list[str] = _TABLE["descriptions"]
RULES = tuple(Rule(int(line[0]), line[2:]) for line in _TABLE["rules"].splitlines() if line[:1].isdigit())
_ENOUGH = 3


def packed_signals(text: str) -> int:
    """The signals of a page's text as they are stored with it."""
    found = signals_of(text)
    return VERSION << len(_SIGNALS) | sum(1 << at for at, name in enumerate(_SIGNALS) if name in found)


def stored_signals(packed: int, text: str, *, filename: str, title: str) -> Sequence[str]:
    """The signals of a page whose text was looked at before, and of its names, which may have changed."""
    if packed < 0 or packed >> len(_SIGNALS) != VERSION:
        return signals_of(text, filename=filename, title=title)
    named = signals_of("", filename=filename, title=title)
    return [name for at, name in enumerate(_SIGNALS) if packed >> at & 1 or name in named]


@lru_cache(maxsize=64)  # all pages of a document have its names, and an answer asks for its quotes twice
def signals_of(text: str, *, filename: str = "", title: str = "") -> Sequence[str]:
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


def gives_orders(text: str) -> bool:
    """Whether a text holds what reads as orders to a model."""
    return _is_enough(signs(text)) or any(_is_enough(signs(inner)) for inner in decoded(text))


def signs(text: str) -> list[tuple[int, int, str]]:
    """(place, weight, rule) of every sign of an order, in their order; a place is a number of words."""
    text = _readable(text)
    line = symbols(text)
    if LETTER * 4 in line:
        line = symbols(joined(text))
    return sorted(_hits(line))


def _is_enough(found: list[tuple[int, int, str]]) -> bool:
    """Whether signs near each other weigh enough; a rule counts once."""
    for at, (place, _, _) in enumerate(found):
        near: dict[str, int] = {}
        for start, weight, rule in islice(found, at, None):
            if start - place > _NEAR:
                break
            near[rule] = weight
            if sum(near.values()) >= _ENOUGH:
                return True
    return False


def _readable(text: str) -> str:
    """The text as a model would take it, without what keeps a word from being known."""
    if any(name in text for name in _IN_CAPITALS):
        text = re.sub(_NAMES, "llm", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        if max(text) >= _FIRST_PICTURE:
            text = re.sub(_PICTURES, "", text)
    text = fold(text)
    for character in _UNSEEN:
        text = text.replace(character, "")
    return text.replace("n't ", " not ")


def _hits(line: str) -> Iterator[tuple[int, int, str]]:
    """(place, weight, rule) of every sign."""
    place = 0
    for sentence in line.split(BREAK):
        if tried := _rules_for(kinds_of(sentence)):
            marked = _pattern(_STARTS).sub(rf"\g<0>{BEGIN}", BREAK + sentence)
            matches = []
            for rule in tried:
                if len(sentence) <= _SHORT or not rule.pattern.startswith(_COMPANY):
                    match = _pattern(rule.pattern).search(marked)
                    if match is not None:
                        matches.append((rule, match))
            less = any(_pattern(description).search(marked) for description in _DESCRIPTIONS) if matches else 0
            for rule, match in _counted(matches):
                if rule.weight > less:
                    yield place + match.start(), rule.weight - less, rule.pattern
        place += len(sentence) + 1


def _counted(matches: list[tuple[Rule, re.Match[str]]]) -> list[tuple[Rule, re.Match[str]]]:
    """The matches of a sentence that count: none that lies inside a heavier one, and of words in company the best."""
    taken: list[tuple[Rule, re.Match[str]]] = []
    company = False
    for rule, match in sorted(matches, key=lambda found: (-found[0].weight, found[1].start() - found[1].end())):
        if rule.pattern.startswith(_COMPANY):
            wanted, company = not company, True
        else:
            wanted = not any(o.start() <= match.start() and match.end() <= o.end() for _, o in taken)
        if wanted:
            taken.append((rule, match))
    return taken


@lru_cache(maxsize=1 << 14)
def _rules_for(present: int) -> list[Rule]:
    """The rules that can hold in a sentence with words of these classes."""
    by_key = _rules_by_key()
    keys = present & sum(by_key)
    found = []
    while keys:
        key = keys & -keys
        keys -= key
        found += [rule for needed, rule in by_key[key] if needed & present == needed]
    return found


@cache
def _rules_by_key() -> dict[int, list[tuple[int, Rule]]]:
    """The rules with the classes they cannot do without, by the one of these that is seldom met."""
    found: dict[int, list[tuple[int, Rule]]] = {}
    common = _TABLE["common"].split()
    for rule in RULES:
        names = _needed(rule.pattern)
        key = next((name for name in names if name not in common), names[0])
        found.setdefault(kind(key), []).append((sum(map(kind, set(names))), rule))
    return found


def _needed(pattern: str) -> list[str]:
    """The classes of a rule outside of choices and options."""
    if pattern.startswith(_COMPANY):
        return [words.strip("@<>") for words in _COMPANIONS.findall(pattern) if BREAK not in words]
    names, depth = [], 0
    for part in _PARTS.findall(pattern):
        depth += (part == "(") - (part == ")")
        if depth == 0 and part.startswith("<") and not part.endswith("?"):
            names.append(part[1:-1])
    return names


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    """A rule as a regular expression over symbols; where an order may begin, any word may stand."""
    classes = class_symbols()

    def expand(match: re.Match[str]) -> str:
        if match[1]:
            found = f"[{classes[match[1]]}]"
            return found if match.start() == 0 or match.string[match.start() - 1] in "@=!" else f"{BEGIN}?{found}"
        return f"(?:{BEGIN}?[^{BREAK}{BEGIN}]){{0,{match[2]}}}?" if match[2] else BEGIN

    if not pattern.startswith(_COMPANY):
        return re.compile(_PLACEHOLDER.sub(expand, pattern))
    together = [f"(?=.*(?:{_PLACEHOLDER.sub(expand, words)}))" for words in _COMPANIONS.findall(pattern)]
    return re.compile("".join(together))


def has_chat_markup(lowered: str) -> bool:
    """Whether a text in small letters holds the marks of a chat."""
    if ("<" in lowered or "[" in lowered) and re.search(_TOKENS, lowered) is not None:
        return True
    if "role" in lowered and re.search(_ROLE_IN_JSON, lowered) is not None:
        return True
    if "```" in lowered and re.search(_FENCE, lowered) is not None:
        return True
    return "assistant" in lowered and _is_script(re.sub(_EMPHASIS, "", lowered))


def has_leaking_image(text: str) -> bool:
    """Whether a picture's address has a place for what the model knows."""
    return "](" in text and re.search(_IMAGE, text.lower()) is not None


def _is_script(lowered: str) -> bool:
    return re.search(_ASSISTANT, lowered) is not None and re.search(_OTHER_ROLE, lowered) is not None
