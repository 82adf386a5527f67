"""Whether a text gives orders to a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import islice

from research.context.injection.disguises import decoded, joined
from research.context.injection.folding import IGNORED, fold
from research.context.injection.rules import COMMON, DESCRIPTIONS, ENOUGH, RULES, STARTS, Rule
from research.context.injection.words import BREAK, LETTER, kind, kinds_of, symbols, symbols_of

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
            if sum(near.values()) >= ENOUGH:
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
            marked = _pattern(STARTS).sub(rf"\g<0>{BEGIN}", BREAK + sentence)
            if len(sentence) > _SHORT:
                tried = [rule for rule in tried if not rule.pattern.startswith(_COMPANY)]
            matches = [(rule, match) for rule in tried if (match := _pattern(rule.pattern).search(marked)) is not None]
            less = any(_pattern(description).search(marked) for description in DESCRIPTIONS) if matches else 0
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
    for rule in RULES:
        names = _needed(rule.pattern)
        key = next((name for name in names if name not in COMMON), names[0])
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
    return re.compile(_expanded(pattern))


def _expanded(pattern: str) -> str:
    if pattern.startswith(_COMPANY):
        return "".join(f"(?=.*(?:{_in_order(words)}))" for words in _COMPANIONS.findall(pattern))
    return _in_order(pattern)


def _in_order(pattern: str) -> str:
    """A rule as a regular expression over symbols; where an order may begin, any word may stand."""

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            found = f"[{symbols_of(match[1])}]"
            return found if match.start() == 0 or pattern[match.start() - 1] in "@=!" else f"{BEGIN}?{found}"
        return f"(?:{BEGIN}?[^{BREAK}{BEGIN}]){{0,{match[2]}}}?" if match[2] else BEGIN

    return _PLACEHOLDER.sub(replace, pattern)
