"""Words that say what follows: a telephone number, a password. By language, because a short word means something else
in another one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from research.errors import UsageError


class Words(NamedTuple):
    phone: str  # the thing itself: phone, Tel., Handy
    call: str  # what one does with it: the number follows at once
    reach: str  # the same, with something in between: reached on …
    person: str  # whom: `call me`
    password: str
    link: str  # between the word and the value: is, on, at


WORDS = {
    language: Words(**entry)
    for language, entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
LANGUAGES = tuple(WORDS)


class Labels(NamedTuple):
    """Patterns for what stands before a number; each ends where the number begins."""

    phone: re.Pattern[str]
    call: re.Pattern[str]
    password: re.Pattern[str]  # to the end of "the password is "
    password_name: re.Pattern[str]  # at the end of what stands before a colon
    password_words: tuple[str, ...]  # in small letters; without one of them no pattern needs to be tried


def labels(languages: Iterable[str]) -> Labels:
    chosen = tuple(dict.fromkeys(languages))
    for language in chosen:
        if language not in WORDS:
            raise UsageError(
                f"the redactor knows no words of the language {language!r}",
                hint=f"it knows those of {', '.join(LANGUAGES)}; patterns and check digits need none",
            )
    return _labels(chosen)


@cache
def _labels(languages: tuple[str, ...]) -> Labels:
    def any_of(field: str) -> str:
        words = dict.fromkeys(word for each in languages for word in getattr(WORDS[each], field).split("|"))
        return (
            "|".join(sorted(map(re.escape, words), key=len, reverse=True)).replace("\\ \\?", " ?").replace("\\ ", " ")
        )

    number = r"(?:[ -]?(?:numbers?|no\.?|nr\.?|nummer|numero|número|numéro|num\.?|n°|№))?"
    link = rf"(?: ?(?:{any_of('link')})(?= ))?"
    between = r"[ \t:.=#|>/-]{0,5}"
    phone = rf"(?i)(?<![^\W\d_])(?:{any_of('phone')})(?:s|\.)?{number}(?: ?\([^()\d\n]{{1,24}}\))?{link}{between}$"
    person = rf"(?: (?:{any_of('person')})(?![^\W\d_]))?"
    call = (
        rf"(?i)(?<![^\W\d_])(?:(?:{any_of('call')}){person}{between}"
        rf"|(?:{any_of('reach')}|{any_of('call')})(?![^\W\d_])[^\d\n.!?:]{{0,30}}?"
        rf"(?:(?<= )(?:{any_of('link')}|number) |:){between})$"
    )
    word = rf"(?<![^\W\d_])(?:{any_of('password')})(?![^\W\d_])"
    plain = tuple(dict.fromkeys(word.split(" ?")[0] for each in languages for word in WORDS[each].password.split("|")))
    name = rf"(?i){word}[\"'` )\]]{{0,3}}[ \t]{{0,4}}$"
    of_what = r"(?: (?:for|of|to|für|von|pour|de|para|per|voor) [^\n:=]{1,40}?)?"
    password = rf"(?i){word}{of_what}[ ,]{{1,2}}(?:{any_of('link')}) (?:now |still |jetzt )?"
    return Labels(re.compile(phone), re.compile(call), re.compile(password), re.compile(name), plain)
