"""Whether a question is answered by a number: an amount, a share, a date; and of which years. In the languages that are
asked most."""

from __future__ import annotations

import re

_PHRASES = re.compile(
    r"\bhow (?:many|much|long|old|far|often|large|big|high|tall|fast|late|early|deep|wide|heavy)\b"
    r"|\b(?:what|which|at what|by what) (?:percent\w*|share|proportion|number|amount|year|date|month|day|time|age|rate"
    r"|price|cost|fraction)\b|\b(?:number|amount|percentage|total|sum|average|ratio) of\b|\bwhat(?: i|')s the (?:total"
    r"|number|amount|percentage|value|price|cost|rate|ratio|average|maximum|minimum)\b"
    r"|\bwhen (?:is|was|were|did|does|do|will|can|must)\b"
    r"|\bwie ?viele?\b|\bwie (?:lange?|hoch|alt|weit|oft|groß|teuer|schwer)\b|\bwann\b|\bwelche[srmn]? (?:jahr|anteil"
    r"|betrag|datum|zahl|prozentsatz)\b"
    r"|\bcombien\b|\bquand\b|\bquelle? (?:année|date|part|pourcentage|montant|somme)\b"
    r"|\bcuánt[oa]s?\b|\bcuando\b|\bcuándo\b|\bqué (?:año|fecha|porcentaje|cantidad)\b"
    r"|\bquant[oiae]\b|\bquale (?:anno|data|percentuale|importo)\b|\bquant[oa]s\b"
    r"|\bqual (?:ano|data|porcentagem|valor)\b"
    r"|\bhoeveel\b|\bwanneer\b|\bwelk (?:jaar|percentage|bedrag)\b"
    r"|多少|几[个年天月次]|幾つ|いくつ|いくら|何[年月日人個件回円時歳割%]|いつ|哪一?年|什么时候",
    re.IGNORECASE,
)


YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b")
_ASKED_YEAR = re.compile(r"(?:\b|FY ?)((?:1[89]|20)\d\d)\b|\bFY ?(\d\d)\b")


def years_asked(question: str) -> frozenset[str]:
    """The years that a question names, as 2022, FY2022 or FY22."""
    return frozenset(whole or f"20{short}" for whole, short in _ASKED_YEAR.findall(question))


def asks_for_number(question: str) -> bool:
    return _PHRASES.search(question) is not None
