"""Words that say what follows: a telephone number, a password. By language, because a short word means something else
in another one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
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
    "en": Words(
        phone="phone|telephone|tel|mobile|mob|cell ?phone|cell|fax|whatsapp|landline|hotline|helpline|contact number",
        call="call|calls|called|phone|ring|text|dial|fax|sms",
        reach="reach|reached|reachable|contact|contacted|message|call",
        person="me|us|him|her|them",
        password="password|passwords|passphrase|passcode|pass ?word|passwd",
        link="is|are|was|on|at|under|to",
    ),
    "de": Words(
        phone="telefon|telefonnummer|tel|handy|handynummer|mobil|mobilnummer|mobiltelefon|rufnummer|durchwahl|festnetz"
        "|telefax|fax|fon",
        call="anrufen|ruf|rufe",
        reach="rufen|ruf|rufe|anrufen|erreichen|erreichbar|erreicht|melden",
        person="mich|uns|ihn|sie|mir",
        password="passwort|kennwort|zugangscode|passphrase",
        link="ist|lautet|war|unter|an|auf",
    ),
    "fr": Words(
        phone="téléphone|telephone|tél|tel|portable|mobile|fixe|télécopie|fax",
        call="appelez|appeler|appelle|appelez-moi",
        reach="appelez|appeler|joindre|joignable|contacter|contactez",
        person="moi|nous|le|la",
        password="mot de passe|mdp",
        link="est|au|sur|à",
    ),
    "es": Words(
        phone="teléfono|telefono|tel|tfno|tlf|móvil|movil|celular|fijo|fax",
        call="llame|llamar|llama|llámame|llámenos",
        reach="llame|llamar|llama|contactar",
        person="me|nos",
        password="contraseña|contrasena|clave de acceso",
        link="es|al|en",
    ),
    "it": Words(
        phone="telefono|tel|cellulare|cell|fisso|fax",
        call="chiamare|chiama|chiami|chiamami",
        reach="chiamare|contattare|raggiungibile",
        person="mi|ci",
        password="password|parola d'ordine",
        link="è|e|al|allo",
    ),
    "nl": Words(
        phone="telefoon|telefoonnummer|tel|mobiel|gsm|fax",
        call="bel|bellen|belt",
        reach="bel|bellen|bereikbaar|bereiken",
        person="mij|me|ons",
        password="wachtwoord",
        link="is|op|naar",
    ),
    "pt": Words(
        phone="telefone|tel|celular|telemóvel|telemovel|fixo|fax",
        call="ligue|ligar|liga",
        reach="ligue|ligar|contacte|contactar",
        person="me|nos",
        password="senha|palavra-passe",
        link="é|para|no",
    ),
    "pl": Words(
        phone="telefon|tel|komórka|kom|faks|fax",
        call="zadzwoń|dzwonić|proszę dzwonić",
        reach="zadzwoń|dzwonić|dostępny|dostępna",
        person="do mnie",
        password="hasło",
        link="to|pod|na",
    ),
    "sv": Words(
        phone="telefon|telefonnummer|tel|mobil|mobilnummer|fax",
        call="ring|ringa",
        reach="ring|nås|kontakta",
        person="mig|oss",
        password="lösenord",
        link="är|på",
    ),
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
