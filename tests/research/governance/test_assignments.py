"""What is written before a secret gives it away; what is written before an ordinary word does not."""

from __future__ import annotations

import pytest

from research.governance.redaction import BaseRedactor

REDACTOR = BaseRedactor()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("password=hunter", "hunter"),
        ("DB_PASSWORD: 'correct horse battery'", "correct horse battery"),
        ("password: hunter\nuser: x", "hunter"),
        ("- db_pass: s3cret", "s3cret"),
        ("Password: Hunter2!", "Hunter2!"),
        ("the password for the old server is Hunter2!.", "Hunter2!"),
        ("Das Kennwort lautet Sommer#1.", "Sommer#1"),
        ("le mot de passe est Ete2024!", "Ete2024!"),
        ("Mot de passe : Ete2024!", "Ete2024!"),
        ("la contraseña es Verano24!", "Verano24!"),
        ("hasło: Zima2024!", "Zima2024!"),
        ('"client_secret": "a1b2c3d4e5"', "a1b2c3d4e5"),
        ('\\"api_key\\": \\"a1b2c3d4e5\\"', "a1b2c3d4e5"),
        ("API key: 9f8e7d6c5b4a", "9f8e7d6c5b4a"),
        ("x-api-key = 9f8e7d6c5b4a", "9f8e7d6c5b4a"),
        ("secret_key_prod := 'Ab3xZq91'", "Ab3xZq91"),
        ("?user=a&access_token=Zx81kQ02mm&page=2", "Zx81kQ02mm"),
        ("Server=x;User Id=sa;Password=p;Pwd1;Encrypt=true", "p;Pwd1"),
        ("postgres://app:s3cr@t/x@db:5432/orders", "s3cr@t/x"),
        ("redis://:hunter@cache", "hunter"),
        ("Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789abcdef"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA=="),
        ("curl -H x -u admin:hunter2 https://host", "hunter2"),
        ("deploy --token Zx81kQ02mm --force", "Zx81kQ02mm"),
        ("<apiKey>Zx81kQ02mm</apiKey>", "Zx81kQ02mm"),
        ("define('DB_PASSWORD', 'Hunter2!');", "Hunter2!"),
        ("machine host login me password hunter", "hunter"),
        ("password = “Hunter2”", "Hunter2"),
    ],
)
def test_taken_out(text: str, value: str) -> None:
    redacted = REDACTOR.redact(text)
    assert value not in redacted
    assert [text[start:end] for start, end, _ in REDACTOR.find(text)] == [value]


@pytest.mark.parametrize(
    "text",
    [
        "Password: must be at least twelve characters long.",
        "The password is case-sensitive and is changed every year.",
        "The password is required. Passwords are 8-64 characters.",
        "password: required",
        "password=$DB_PASSWORD",
        "password = os.environ['PASSWORD']",
        "password = getpass.getpass()",
        "password=password, token=token",
        "api_key = settings.api_key",
        "token: the unit of account; max_tokens=10000",
        "token_encoding = 'o200k_base'",
        "key: value and Secret: the recipe",
        "password=§§secret(DB_PASSWORD)",
        "password=<your-password>",
        "password: ********",
        "https://example.com:8080/path@2x.png",
        "the bearer of-bad-news-and-more-of-it",
        "public-key: see the appendix",
        "docker run -u 1000:1000 image",
        "tokens: 4096, tokens: 8192",
    ],
)
def test_words_variables_and_placeholders_stay(text: str) -> None:
    assert REDACTOR.redact(text) == text
