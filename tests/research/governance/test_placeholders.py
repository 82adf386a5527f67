"""Placeholders: the same number for the same thing within a context, and nothing to read out of them."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from research.governance.redaction import BaseRedactor, Placeholders


def test_one_number_for_one_thing() -> None:
    names = Placeholders()
    assert names.name("email", "Ana@Example.com") == names.name("email", "ana@example.com") == "<EMAIL_1>"
    assert names.name("iban", "DE89 3704") == names.name("iban", "de893704") == "<IBAN_1>"
    assert names.name("key", "abc") == "<KEY_1>"
    assert names.name("key", "ABC") == "<KEY_2>", "of a key every letter counts"


def test_one_number_for_one_person() -> None:
    names = Placeholders()
    assert names.name("person", "Maria Lopez") == "<PERSON_1>"
    for same in ("Ms. Lopez", "maria lopez", "Maria", "Lopez's", "Maria Jimena Lopez", "Dr Maria Lopez"):
        assert names.name("person", same) == "<PERSON_1>", same
    assert names.name("person", "Ana Lopez") == "<PERSON_2>"
    assert names.name("person", "Lopez") == "<PERSON_3>", "it may be either of them"
    assert names.name("person", "Lopez") == "<PERSON_3>"
    assert names.name("person", "Maria") == "<PERSON_1>"


def test_texts_of_one_context_share_them() -> None:
    redactor, names = BaseRedactor("pii"), Placeholders()
    within = partial(redactor.redact, placeholders=names)
    assert within("from ana@example.com to bob@example.com") == "from <EMAIL_1> to <EMAIL_2>"
    assert within("bob@example.com again") == "<EMAIL_2> again"
    assert redactor.redact("bob@example.com again") == "<EMAIL_1> again", "another context"


def test_nothing_can_be_read_out() -> None:
    names = Placeholders()
    names.name("person", "Maria Lopez")
    names.name("key", "sk-hunter2hunter2")
    held = repr(vars(names)) + repr(names._numbers) + repr(names._people)
    assert "hunter" not in held
    assert "opez" not in held.lower()
    del names._lock
    assert b"hunter" not in pickle.dumps(vars(names))


def test_many_threads_get_one_number_each() -> None:
    names = Placeholders()
    values = [f"user{number % 50}@example.com" for number in range(2000)]
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda value: names.name("email", value), values))
    assert len(set(given)) == 50
    assert all(given[at] == given[at % 50] for at in range(len(values)))
