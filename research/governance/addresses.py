"""Where somebody lives: a street with its number, and the town behind it. A town alone is no address.

Streets of English, German, French, Spanish, Italian, Dutch and Portuguese shape; others are not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from research.governance.findings import Finding

_NAME = r"[^\W\d_a-zà-öø-ÿ][\w'’.-]{0,30}"
_KINDS = (
    "Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Court|Ct|Boulevard|Blvd|Way|Place|Pl|Square|Sq|Terrace|Ter|Close"
    "|Crescent|Cres|Parkway|Pkwy|Highway|Hwy|Mews|Row|Walk|Gardens|Gdns|Hill|Circle|Cir|Trail|Alley|Quay|Grove|Rise"
)
_UNIT = r"(?:,? (?:Apt|Apartment|Suite|Ste|Unit|Flat|Floor|Room|#)\.? ?\w{1,6})?"
_POSTCODE = (
    r"(?:[A-Z]{2} )?\d{5}(?:-\d{4})?|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d|[A-Z]{2,3},? \d{4}"
)
_TOWN = rf"(?:,?[ \n]{{1,2}}(?:{_NAME} ?){{1,3}},? (?:{_POSTCODE})(?!\w))?"
_TOWN_AFTER = (
    rf"(?:,?[ \n]{{1,2}}(?:[A-Z]{{1,2}}-)?\d{{4,5}}(?: ?[A-Z]{{2}})?[ ,]{{1,2}}{_NAME}(?:[ -]{_NAME}){{0,2}})?"
)

_PATTERNS = tuple(
    re.compile(shape)
    for shape in (
        # 12 Elm Street, Flat 3, Leeds LS1 4AB
        rf"(?<![\w.,$€£])(?<![Ii]n )\d{{1,5}}[A-Za-z]?(?:[-/]\d{{1,5}})?,? (?:{_NAME} ){{1,4}}?(?:{_KINDS})(?!\w)\.?"
        rf"{_UNIT}{_TOWN}",
        # P.O. Box 123
        rf"(?<!\w)P\.? ?O\.? ?Box \d{{1,6}}(?!\d){_TOWN}",
        # Lindenstraße 12a, 24103 Kiel; Keizersgracht 12
        rf"(?<!\w)[^\W\d_a-z][\w.-]{{0,40}}?"
        rf"(?:straße|strasse|str\.|weg|platz|allee|gasse|damm|ufer|straat|gracht|laan|plein)"
        rf",? \d{{1,4}} ?[a-zA-Z]?(?: ?[-/] ?\d{{1,4}})?(?!\w){_TOWN_AFTER}",
        # Lange Straße 12
        rf"(?<!\w){_NAME}[ -](?:Straße|Strasse|Str\.|Weg|Platz|Allee|Gasse|Ring|Damm|Ufer),? \d{{1,4}} ?[a-z]?(?!\w)"
        rf"{_TOWN_AFTER}",
        # 11, boulevard de Samson, 06486 Nice
        rf"(?<![\w.,])\d{{1,4}}(?: ?bis| ?ter)?,? (?:rue|avenue|boulevard|bd|place|chemin|impasse|allée|quai|cours)"
        rf" (?:(?:de|du|des|la|le|les|d'|l'|d’|l’) ?){{0,3}}{_NAME}(?:[ -]{_NAME}){{0,3}}{_TOWN_AFTER}",
        # Calle Mayor 5, 28013 Madrid; Via Roma, 12
        rf"(?<!\w)(?:Calle|C/|Avenida|Avda\.?|Paseo|Plaza|Via|Viale|Piazza|Corso|Largo|Rua|Travessa) ?"
        rf"(?:(?:de|del|della|dei|la|las|los|da|do|dos|das) ){{0,3}}"
        rf"{_NAME}(?: (?:(?:de|del|da|do|e|y) )?{_NAME}){{0,3}},? (?:n[.º°o]? ?)?\d{{1,4}}(?!\w){_TOWN_AFTER}",
    )
)
_ANY_DIGIT = re.compile(r"\d")


def addresses(text: str) -> Iterator[Finding]:
    if not _ANY_DIGIT.search(text):
        return
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            yield Finding(match.start(), match.start() + len(match.group().rstrip(" ,.\n")), "address")
