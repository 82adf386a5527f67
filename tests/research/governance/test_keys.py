"""Keys and tokens by their makers' marks, private keys, and what can be nothing else; held against detect-secrets."""

from __future__ import annotations

import random

import pytest
from detect_secrets.core.plugins import initialize

from research.governance.keys import entropy, is_blob
from research.governance.redaction import BaseRedactor
from tests.research.governance.made import HELD_SECRETS, SECRETS

THEIRS = [
    initialize.from_plugin_classname(f"{name}Detector")
    for name in (
        "AWSKey", "DiscordBotToken", "GitHubToken", "GitLabToken", "JwtToken", "OpenAI", "PrivateKey", "PypiToken",
        "SendGrid", "Slack", "Stripe", "TelegramBotToken", "TwilioKey",
    )
]  # fmt: skip
BODY = "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"[at:] for at in range(4))


@pytest.mark.parametrize("form", sorted({**SECRETS, **HELD_SECRETS}))
def test_every_form_is_taken_out_wherever_it_stands(form: str) -> None:
    shown, secret = {**SECRETS, **HELD_SECRETS}[form](random.Random(form))
    for text in (shown, f"({shown})", f"see {shown}, please", f"a\n{shown}\nb"):
        redacted = BaseRedactor().redact(text)
        assert not [at for at in range(len(secret) - 4) if secret[at : at + 5] in redacted], redacted


def test_what_detect_secrets_finds_is_found() -> None:
    """By its rules for tokens; of those for whole lines of code the sentences have their own."""
    seen = set()
    redactor = BaseRedactor()
    for form, make in {**SECRETS, **HELD_SECRETS}.items():
        for number in range(5):
            shown, _ = make(random.Random(f"{form}-{number}"))
            for plugin in THEIRS:
                for line in shown.splitlines():
                    if plugin.analyze_line("x", line):
                        seen.add(type(plugin))
                        assert redactor.find(shown), f"{form}: {type(plugin).__name__}"
    assert len(seen) >= 10, "the sentences have tokens for most of its rules"


def test_a_private_key_goes_with_all_its_lines() -> None:
    whole = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----"
    redactor = BaseRedactor()
    assert redactor.redact(f"before\n{whole}\nafter") == "before\n<PRIVATE_KEY_1>\nafter"
    cut_off = redactor.redact(f"before\n-----BEGIN PRIVATE KEY-----\n{BODY}")
    assert cut_off == "before\n<PRIVATE_KEY_1>"
    two = redactor.redact(f"{whole}\nand\n{whole.replace('MIIE', 'MIIF')}")
    assert two == "<PRIVATE_KEY_1>\nand\n<PRIVATE_KEY_2>"
    assert redactor.redact("-----BEGIN PUBLIC KEY-----\nAAAA") == "-----BEGIN PUBLIC KEY-----\nAAAA"
    for words in (
        "-----BEGIN ",
        "Guard your PRIVATE KEY----- well",
        "-----BEGIN a PRIVATE KEY-----",
        "PuTTY-User-Key-File",
    ):
        assert redactor.redact(words) == words, "the words alone begin no block, and are no fault"
    putty = f"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 4\n{BODY}\nPrivate-MAC: 0123abcd\nend"
    assert redactor.redact(putty) == "<PRIVATE_KEY_1>\nend"


@pytest.mark.parametrize(
    "text",
    [
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "commit 2aded3b1c4f0e5d6a7b8c9d0e1f2a3b4c5d6e7f8",
        "550e8400-e29b-41d4-a716-446655440000",
        "http://www.gpo.gov/fdsys/pkg/STATUTE-104/pdf/STATUTE-104-Pg3096.pdf",
        "fdsys/pkg/STATUTE-104/pdf/STATUTE-104-Pg3096.pdf",
        "file/1457c0d6bfcb4967418bfb8ac142f64a-Paper.pdf",
        "risk-adjusted-performance-measures and sk-learn-contributed-packages-list",
        "AnnualReportOnFormTenKForTheFiscalYearEnded2023",
        "https://docs.example.com/document/d/1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX3yZ4/edit",
        "Donaudampfschifffahrtsgesellschaftskapitän",
        "research.governance.masking.KnownSecrets.missing",
    ],
)
def test_checksums_paths_and_words_stay(text: str) -> None:
    assert BaseRedactor().find(text) == []


def test_entropy() -> None:
    assert entropy("") == 0
    assert entropy("aaaa") == 0
    assert entropy("abcd") == 2
    assert is_blob("q7Rk2LmX9pVt4BzN8cWf3HsJ6dGyA1uE")
    assert not is_blob("q7Rk-2LmX-9pVt-4BzN-8cWf-3HsJ-6dGy")
