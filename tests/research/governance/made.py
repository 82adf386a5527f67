"""Sentences with something in them that has to go: what people write in letters, tickets, notes and logs.

Half of the sentences are made of templates, countries and formats that were held apart (`held`): the rules were written
with the others in view, and with none of these.
The values come from Faker and from the numbering plans and token formats as their owners publish them; the formats
(spaces, dashes, brackets, +49 (0) …) are those people write.
"""

from __future__ import annotations

import random
import re
import string
import tomllib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from faker import Faker

KINDS = ("email", "card", "iban", "phone", "key", "person")

WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("made.toml").read_text("utf-8"))
TITLES = {
    "Mrs", "Miss", "Prof", "Univ", "Dipl", "Ing", "MBA", "Eng", "DVM", "DDS", "PhD", "Dott", "Sig", "Sra", "Sir", "Med",
}  # fmt: skip

_ALNUM = string.ascii_letters + string.digits
_B64 = _ALNUM + "+/"
_URL = _ALNUM + "-_"
_HEX = string.digits + "abcdef"
_UPPER = string.ascii_uppercase + string.digits

Secret = tuple[str, str]  # as it stands in the text, and the part of it that has to go


@dataclass(frozen=True)
class Made:
    kind: str
    text: str
    value: str
    held: bool
    form: str = ""  # which country or format, to see what is missed

    def left(self, redacted: str) -> bool:
        """Whether any of the value's substance is still there."""
        rest = re.sub(r"<[A-Z_]+_\d+>", "¦", redacted)
        if self.kind == "person":
            words = [
                word for word in re.findall(r"[^\W\d_]{3,}", self.value) if word[0].isupper() and word not in TITLES
            ]
            return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", rest) for word in words)
        if self.kind == "email":
            return self.value in rest or self.value.split("@")[0] in rest
        if self.kind == "key":
            return any(self.value[at : at + 5] in rest for at in range(len(self.value) - 4))
        compact = re.sub(r"[\W_]", "", self.value)
        compact_rest = re.sub(r"[^\w¦]", "", rest)
        return any(compact[at : at + 5] in compact_rest for at in range(len(compact) - 4))


def made(seed: int, each: int, kinds: tuple[str, ...] = KINDS) -> Iterator[Made]:
    """`each` sentences of every kind, half of them held; the same ones for the same seed."""
    for kind in kinds:
        for number in range(each):
            held = number % 2 == 1
            yield _MAKERS[kind](random.Random(f"{seed}-{kind}-{number}"), held)


_opened = cache(Faker)  # one takes as long as a hundred sentences


def _words(held: bool) -> dict[str, Any]:
    return dict(WORDS["held" if held else "seen"])


def _faker(pick: random.Random, locale: str) -> Faker:
    faker = _opened(locale)
    faker.seed_instance(pick.getrandbits(64))
    return faker


def _email(pick: random.Random, held: bool) -> Made:
    locale = pick.choice(_words(held)["locales"])
    faker = _faker(pick, locale)
    first, last = (re.sub(r"\W", "", faker.first_name().lower()) for _ in range(2))
    domain = faker.domain_name()
    value = pick.choice(
        (
            faker.email(),
            faker.company_email(),
            f"{first}.{last}@{domain}",
            f"{first[0]}_{last}{pick.randrange(1900, 2020)}@{domain}".upper(),
            f"{first}+{pick.choice(('news', 'shop', 'x'))}@mail.{domain}",
            f"{first}-{last}@{pick.choice(('web', 'team', 'post'))}.{domain.split('.')[0]}.co.uk",
        )
    )
    return Made("email", pick.choice(_words(held)["email"]).format(value), value, held, locale)


def _card(pick: random.Random, held: bool) -> Made:
    faker = _faker(pick, "en_US")
    kind = pick.choice(("visa16", "mastercard", "amex", "discover", "diners", "jcb", "visa19", "visa16", "mastercard"))
    number = faker.credit_card_number(kind)
    groups = {15: (4, 6, 5), 14: (4, 6, 4)}.get(
        len(number), (4,) * (len(number) // 4) + ((len(number) % 4,) if len(number) % 4 else ())
    )
    separator = pick.choice(("", " ", " ", "-", "\u00a0"))
    value = separator.join(_cut(number, groups))
    return Made("card", pick.choice(_words(held)["card"]).format(value), value, held, kind)


def _iban(pick: random.Random, held: bool) -> Made:
    locale = pick.choice(_words(held)["accounts"])
    number = _faker(pick, locale).iban()
    cut = (4,) * (len(number) // 4 + 1)
    value = pick.choice(
        (
            number,
            " ".join(_cut(number, cut)),
            " ".join(_cut(number, cut)),
            "\u00a0".join(_cut(number, cut)),
            "-".join(_cut(number, cut)),
            number.lower(),
        )
    )
    return Made("iban", pick.choice(_words(held)["iban"]).format(value), value, held, locale)


def _cut(text: str, groups: tuple[int, ...]) -> list[str]:
    parts, at = [], 0
    for size in groups:
        parts.append(text[at : at + size])
        at += size
    return [part for part in parts if part]


def _phone(pick: random.Random, held: bool) -> Made:
    country = pick.choice(_words(held)["locales"])
    value = _faker(pick, country).phone_number()
    if pick.random() < 0.6:
        plans = _words(held)["plans"]
        country = pick.choice(sorted(plans))
        plan = pick.choice(plans[country])
        value = "".join(
            {"#": str(pick.randrange(10)), "N": str(pick.randrange(2, 10))}.get(sign, sign) for sign in plan
        )
    templates = _words(held)["phone"]
    if value.startswith(("+", "00")) and pick.random() < 0.3:
        templates = WORDS["seen"]["bare_phone"]
    return Made("phone", pick.choice(templates).format(value), value, held, country)


def _person(pick: random.Random, held: bool) -> Made:
    locale = pick.choice(_words(held)["locales"])
    faker = _faker(pick, locale)
    shape = pick.random()
    first, last = faker.first_name(), faker.last_name()
    if shape < 0.55:
        value = f"{first} {last}"
    elif shape < 0.7:
        value = faker.name()
    elif shape < 0.8:
        value = f"{pick.choice(('Mr', 'Mrs', 'Ms', 'Dr.', 'Prof.'))} {last}"
    elif shape < 0.9:
        value = f"{first} {pick.choice(string.ascii_uppercase)}. {last}"
    else:
        value = first
    return Made("person", pick.choice(_words(held)["person"]).format(value), value, held, f"{locale} {shape:.1f}")


def _chars(pick: random.Random, alphabet: str, count: int) -> str:
    return "".join(pick.choice(alphabet) for _ in range(count))


def _password(pick: random.Random) -> str:
    """As people and generators make them: words with figures and signs, or a jumble."""
    word = pick.choice(("Sommer", "liverpool", "Blue", "tiger", "Kermit", "winter"))
    return pick.choice(
        (
            f"{word}{pick.randrange(1000, 10_000)}!",
            f"{word}#{_chars(pick, _ALNUM, 3)}{pick.randrange(10, 100)}",
            _chars(pick, _ALNUM + "!%+?_-", 14) + "7",
        )
    )


def _jwt(pick: random.Random) -> str:
    header = urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    claims = urlsafe_b64encode(b"{" + _chars(pick, _ALNUM, 40).encode()).decode().rstrip("=")
    return f"{header}.{claims}.{_chars(pick, _URL, 43)}"


def _pem(pick: random.Random, kind: str) -> Secret:
    body = "\n".join(_chars(pick, _B64, 64) for _ in range(6))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----", body


def _service_account(pick: random.Random) -> Secret:
    body = "\\n".join(_chars(pick, _B64, 64) for _ in range(5))
    return f'"private_key": "-----BEGIN PRIVATE KEY-----\\n{body}\\n-----END PRIVATE KEY-----\\n"', body


def _inside(shape: str, secret: str) -> Secret:
    return shape.replace("{}", secret), secret


SECRETS: dict[str, Callable[[random.Random], Secret]] = {
    "aws id": lambda r: _inside("{}", "AKIA" + _chars(r, _UPPER, 16)),
    "aws secret": lambda r: _inside("aws_secret_access_key = {}", _chars(r, _B64, 40)),
    "github": lambda r: _inside("{}", "ghp_" + _chars(r, _ALNUM, 36)),
    "github fine": lambda r: _inside("{}", f"github_pat_{_chars(r, _ALNUM, 22)}_{_chars(r, _ALNUM, 59)}"),
    "gitlab": lambda r: _inside("{}", "glpat-" + _chars(r, _URL, 20)),
    "slack bot": lambda r: _inside(
        "{}", f"xoxb-{_chars(r, string.digits, 12)}-{_chars(r, string.digits, 12)}-{_chars(r, _ALNUM, 24)}"
    ),
    "stripe": lambda r: _inside("{}", "sk_live_" + _chars(r, _ALNUM, 24)),
    "openai": lambda r: _inside("{}", f"sk-proj-{_chars(r, _URL, 74)}T3BlbkFJ{_chars(r, _URL, 74)}"),
    "anthropic": lambda r: _inside("{}", f"sk-ant-api03-{_chars(r, _URL, 93)}AA"),
    "hugging face": lambda r: _inside("{}", "hf_" + _chars(r, string.ascii_letters, 34)),
    "google": lambda r: _inside("{}", "AIza" + _chars(r, _URL, 35)),
    "jwt": lambda r: _inside("{}", _jwt(r)),
    "pem": lambda r: _pem(r, "RSA "),
    "bearer": lambda r: _inside("Authorization: Bearer {}", _chars(r, _URL, 32)),
    "postgres": lambda r: _inside("postgresql://app:{}@db.internal:5432/orders", _chars(r, _ALNUM, 12)),
    "password is": lambda r: _inside("the password is {}", _password(r)),
    "password =": lambda r: _inside("password={}", _password(r)),
    "yaml": lambda r: _inside("db_password: {}", _password(r)),
    "json": lambda r: _inside('"client_secret": "{}"', _chars(r, _URL, 32)),
    "api key": lambda r: _inside("API_KEY={}", _chars(r, _HEX, 32)),
    "aws session": lambda r: _inside("{}", "ASIA" + _chars(r, _UPPER, 16)),
    "github app": lambda r: _inside("{}", f"ghs_{_chars(r, _ALNUM, 36)}"),
    "gitlab runner": lambda r: _inside("{}", "glrt-" + _chars(r, _URL, 20)),
    "slack hook": lambda r: _inside(
        "https://hooks.slack.com/services/T{}",
        f"{_chars(r, _UPPER, 8)}/B{_chars(r, _UPPER, 8)}/{_chars(r, _ALNUM, 24)}",
    ),
    "stripe restricted": lambda r: _inside("{}", "rk_live_" + _chars(r, _ALNUM, 24)),
    "openai old": lambda r: _inside("{}", f"sk-{_chars(r, _ALNUM, 20)}T3BlbkFJ{_chars(r, _ALNUM, 20)}"),
    "npm": lambda r: _inside("{}", "npm_" + _chars(r, _ALNUM, 36)),
    "pypi": lambda r: _inside("{}", "pypi-AgEIcHlwaS5vcmc" + _chars(r, _URL, 80)),
    "sendgrid": lambda r: _inside("{}", f"SG.{_chars(r, _URL, 22)}.{_chars(r, _URL, 43)}"),
    "digitalocean": lambda r: _inside("{}", "dop_v1_" + _chars(r, _HEX, 64)),
    "azure storage": lambda r: _inside(
        "AccountName=archive;AccountKey={};EndpointSuffix=core.windows.net", b64encode(r.randbytes(64)).decode()
    ),
    "mongo": lambda r: _inside(
        "mongodb+srv://reader:{}@cluster0.abcde.mongodb.net/test", _password(r).replace("#", "").replace("?", "")
    ),
    "openssh": lambda r: _pem(r, "OPENSSH "),
    "basic": lambda r: _inside(
        "Authorization: Basic {}", b64encode(f"admin:{_chars(r, _ALNUM, 12)}".encode()).decode()
    ),
    "exported": lambda r: _inside("export DB_PASSWORD='{}'", _password(r)),
    "passwort": lambda r: _inside("das Passwort lautet {}", _password(r)),
    "header": lambda r: _inside("X-Api-Key: {}", _chars(r, _ALNUM, 40)),
    "query": lambda r: _inside("https://api.example.com/v1/items?access_token={}&page=2", _chars(r, _URL, 40)),
    "ado": lambda r: _inside(
        "Server=db1;Database=crm;User Id=sa;Password={};Encrypt=true", _password(r).replace(";", "")
    ),
    "token": lambda r: _inside("refresh_token: {}", _chars(r, _URL, 48)),
}
HELD_SECRETS: dict[str, Callable[[random.Random], Secret]] = {
    "openrouter": lambda r: _inside("{}", "sk-or-v1-" + _chars(r, _HEX, 64)),
    "groq": lambda r: _inside("{}", "gsk_" + _chars(r, _ALNUM, 52)),
    "github refresh": lambda r: _inside("{}", "ghr_" + _chars(r, _ALNUM, 76)),
    "grafana": lambda r: _inside("{}", f"glsa_{_chars(r, _ALNUM, 32)}_{_chars(r, _HEX, 8)}"),
    "vault": lambda r: _inside("VAULT_TOKEN={}", "hvs." + _chars(r, _URL, 90)),
    "shopify": lambda r: _inside("{}", "shpat_" + _chars(r, _HEX, 32)),
    "databricks": lambda r: _inside("{}", "dapi" + _chars(r, _HEX, 32)),
    "twilio": lambda r: _inside("TWILIO_AUTH_TOKEN={}", _chars(r, _HEX, 32)),
    "telegram": lambda r: _inside("{}", f"{_chars(r, '123456789', 10)}:AA{_chars(r, _URL, 33)}"),
    "slack app": lambda r: _inside(
        "{}", f"xapp-1-A{_chars(r, _UPPER, 10)}-{_chars(r, string.digits, 13)}-{_chars(r, _HEX, 64)}"
    ),
    "stripe hook": lambda r: _inside("{}", "whsec_" + _chars(r, _ALNUM, 32)),
    "redis": lambda r: _inside("redis://:{}@cache.internal:6379/0", _chars(r, _ALNUM, 20)),
    "jdbc": lambda r: _inside("jdbc:mysql://db/crm?user=app&password={}&useSSL=true", _chars(r, _ALNUM, 14)),
    "sas": lambda r: _inside(
        "https://a.blob.core.windows.net/c?sv=2022-11-02&sig={}&se=2025", _chars(r, _ALNUM, 43) + "%3D"
    ),
    "option": lambda r: _inside("deploy --api-key {} --region eu", _chars(r, _ALNUM, 32)),
    "element": lambda r: _inside("<Password>{}</Password>", _password(r)),
    "netrc": lambda r: _inside("machine example.com login admin password {}", _password(r)),
    "pgpassword": lambda r: _inside("PGPASSWORD={} psql -h db", _chars(r, _ALNUM, 12)),
    "service account": _service_account,
    "contraseña": lambda r: _inside("la contraseña es {}", _password(r)),
    "mot de passe": lambda r: _inside("Mot de passe : {}", _password(r)),
    "quoted": lambda r: _inside("the wifi password is '{}'", _password(r)),
    "php": lambda r: _inside("define('DB_PASSWORD', '{}');", _password(r)),
    "arrow": lambda r: _inside("'secret_key' => '{}',", _chars(r, _ALNUM, 40)),
    "pgp": lambda r: _pem(r, "PGP "),
}


def _key(pick: random.Random, held: bool) -> Made:
    secrets = HELD_SECRETS if held else SECRETS
    form = pick.choice(sorted(secrets))
    shown, value = secrets[form](pick)
    return Made("key", pick.choice(_words(held)["key"]).replace("{}", shown), value, held, form)


_MAKERS: dict[str, Callable[[random.Random, bool], Made]] = {
    "email": _email,
    "card": _card,
    "iban": _iban,
    "phone": _phone,
    "key": _key,
    "person": _person,
}
