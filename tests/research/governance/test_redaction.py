"""The base redactor: kinds, allow lists, languages, disguises, and what an earlier pass has left."""

from __future__ import annotations

import subprocess
import sys

import pytest

from research.errors import RedactionError, UsageError
from research.governance import (
    BaseRedactor,
    NoopRedactor,
    Placeholders,
    RedactorProtocol,
    SafeRedactor,
    redactor_of,
)
from research.governance.redaction import KINDS, PII, SECRETS
from research.settings import Settings

TEXT = "ana@example.com, 4111 1111 1111 1111, password=hunter2, +49 30 1234567, 10.0.0.1"


def test_kinds_are_chosen() -> None:
    assert BaseRedactor().redact(TEXT) == TEXT.replace("hunter2", "<PASSWORD_1>")
    pii = "<EMAIL_1>, <CARD_1>, password=<PASSWORD_1>, <PHONE_1>, 10.0.0.1"
    assert BaseRedactor("pii").redact(TEXT) == pii
    assert BaseRedactor("email").redact(TEXT) == TEXT.replace("ana@example.com", "<EMAIL_1>")
    assert SECRETS < PII < set(KINDS)
    assert "email" in repr(BaseRedactor("email"))


def test_a_kind_that_is_not_known_is_named() -> None:
    with pytest.raises(UsageError, match="knows no kind 'shoe'"):
        BaseRedactor({"shoe"})
    with pytest.raises(UsageError, match="address, person need PresidioRedactor"):
        BaseRedactor({"person"})


def test_what_is_allowed_stays() -> None:
    redactor = BaseRedactor("pii", allow=["*@example.com", "DE89370400440532013000", " ", "AKIAIOSFODNN7EXAMPLE"])
    text = "ANA@EXAMPLE.COM, DE89 3704 0044 0532 0130 00, AKIAIOSFODNN7EXAMPLE, bob@example.org, AKIAIOSFODNN7EXAMPLF"
    assert redactor.redact(text) == text.replace("bob@example.org", "<EMAIL_1>").replace(
        "AKIAIOSFODNN7EXAMPLF", "<KEY_1>"
    )


def test_a_second_pass_changes_nothing() -> None:
    redactor = BaseRedactor("pii")
    once = redactor.redact(f"{TEXT}, token=Zx81kQ02mm99, https://u:pw12@host/x")
    assert redactor.redact(once) == once
    masked = "password=§§secret(DB_PASSWORD) and token: §§secret(API.TOKEN-2)"
    assert redactor.redact(masked) == masked


def test_a_placeholder_in_the_text_protects_nothing_beside_it() -> None:
    assert "hunter2" not in BaseRedactor().redact("password='<KEY_1> hunter2'")
    assert "Zx81kQ02mm" not in BaseRedactor().redact("token=Zx81kQ02mm<KEY_1>")
    assert "4111" not in BaseRedactor("pii").redact("<CARD_1> 4111 1111 1111 1111")


def test_disguises_do_not_help() -> None:
    redactor = BaseRedactor("pii")
    for text in (
        "４１１１ １１１１ １１１１ １１１１",
        "4111\u200b1111\u200b1111\u200b1111",
        "4111‑1111‑1111‑1111",
        "٤١١١ ١١١١ ١١١١ ١١١١",
        "41\u00ad11 1111 1111 11\u200b11",
    ):
        assert redactor.redact(f"a {text} b") == "a <CARD_1> b"
    assert redactor.redact("ｐａｓｓｗｏｒｄ＝ｈｕｎｔｅｒ２") == "ｐａｓｓｗｏｒｄ＝<PASSWORD_1>"
    assert redactor.redact("no \u200b disguise") == "no \u200b disguise"


def test_what_settings_make_together() -> None:
    assert isinstance(redactor_of(Settings()), BaseRedactor)
    assert isinstance(redactor_of(Settings()), RedactorProtocol)
    assert redactor_of(Settings(redact="off")).redact(TEXT) == NoopRedactor().redact(TEXT) == TEXT
    settings = Settings(redact_allow=("hunter*",), secrets=("A_KEY", "B_KEY"))
    redactor = redactor_of(settings, environment={"A_KEY": "tortoise-77"})
    text = "password=tortoise-77, password=hunter2, password=horse3"
    assert redactor.redact(text) == "password=§§secret(A_KEY), password=hunter2, password=<PASSWORD_1>"
    assert repr(redactor).startswith("Chain(SecretMasker(A_KEY), BaseRedactor(")
    safe = SafeRedactor(redactor)
    safe.warm_up()
    assert safe.redact_all([text, "token=horse333"], Placeholders()).texts[1] == "token=<KEY_1>"
    masked_only = redactor_of(Settings(redact="off", secrets=("A_KEY",)), environment={"A_KEY": "tortoise-77"})
    assert masked_only.redact(text) == text.replace("tortoise-77", "§§secret(A_KEY)")
    with pytest.raises(RedactionError, match="de_core_news_sm"):
        redactor_of(Settings(redact="pii", redact_language="en + de"))
    short = SafeRedactor(lambda: redactor_of(settings, environment={"A_KEY": "short"}))
    assert short.redact_all([text]).reasons == {"unavailable": 1}
    with pytest.raises(UsageError, match="A_KEY is shorter than 6 characters"):
        short.warm_up()


def test_the_base_redactor_loads_nothing_heavy() -> None:
    code = (
        "import sys; from research.governance import BaseRedactor, SafeRedactor, SecretMasker\n"
        "BaseRedactor('pii').redact('x')\n"
        "heavy = {'presidio_analyzer', 'spacy', 'torch', 'numpy', 'requests', 'detect_secrets', 'asyncio', 'logging'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
