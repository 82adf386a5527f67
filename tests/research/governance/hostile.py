"""Texts of 100,000 characters that would keep a careless pattern busy for hours: beginnings without an end, and signs
that many rules begin with."""

from __future__ import annotations

LENGTH = 100_000

_PARTS = (
    "a", "@", "a@", "a@a.", "x@x-", "a (at) ", "1", "1 ", "1-", "12 ", "(1", "+1 ", "1\u200b", "１２",
    "123-45-", "12345678901 ", "AB 12 34 56 ", "DE89 ", "DE89", "::", "1::1:", "ffff:", "eyJ", "eyJ-",
    "eyJ.", "sk-", "AKIA", "ghp_", "aA1", "aA1/", "=", "a=", "password=", "password==1 ", "password='",
    "password is ", "password for ", "password: ", "mot de passe ", "api key: a1", 'token="', "://",
    "://a:b", "://a:b@", "bearer ", "Authorization: Basic ", "--", "--password ", "<password>",
    "login a password ", "curl -u a:", "'password', '", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ",
    "phone 123 456 ", "call me on 12 34 56 ", "call x x x x x x x x", "reached ", "tel. : ", "tel 1", "-",
    "_", '"', " ", "\n", "x.", "ee.ee.", "Dear ", "A ", "Maria ", "Dr. ", "regards,\n", "12 A ", "12 Elm ",
    "Straße 1 ", "Calle de la ", "Via A 1 ", "1, rue de la ", "<PERSON_1>", "§§secret(A)", "<", "§§",
)  # fmt: skip
TEXTS = {part: (part * (LENGTH // len(part) + 1))[:LENGTH] for part in _PARTS}
