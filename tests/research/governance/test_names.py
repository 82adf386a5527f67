"""Which words are a person's: the rules around the model, with what a model might say written down."""

from __future__ import annotations

import pytest

from research.governance.findings import merged
from research.governance.names import Entity, addresses, is_word, people

GIVEN = {
    "maria": 9,
    "henrike": 3,
    "hans": 8,
    "amber": 3,
    "will": 4,
    "jean": 8,
    "paul": 8,
    "anouk": 2,
    "zoe": 4,
    "york": 1,
}


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
        ("Anouk told nobody.", [("Anouk", "ORGANIZATION")], ["Anouk"]),
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


def test_english_words_are_known() -> None:
    assert all(map(is_word, ("will", "noise", "grant", "coats")))
    assert not any(map(is_word, ("maria", "johnson", "ostermann", "zava")))


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
