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
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from faker import Faker

KINDS = ("email", "card", "iban", "phone", "key", "person")

LOCALES = (
    "en_US", "en_GB", "de_DE", "fr_FR", "es_ES", "pt_BR", "en_CA", "it_IT", "nl_NL", "sv_SE", "pl_PL", "en_IN", "en_AU",
    "de_AT", "de_CH",
)  # fmt: skip
HELD_LOCALES = (
    "da_DK", "fi_FI", "no_NO", "cs_CZ", "hu_HU", "ro_RO", "pt_PT", "es_MX", "en_NZ", "en_IE", "hr_HR", "sl_SI", "et_EE",
)  # fmt: skip

# Countries with an IBAN; for the others Faker makes up something British.
ACCOUNTS = ("en_GB", "de_DE", "fr_FR", "es_ES", "pt_BR", "it_IT", "nl_NL", "pl_PL", "de_AT", "de_CH")
HELD_ACCOUNTS = ("da_DK", "fi_FI", "no_NO", "tr_TR", "pt_PT", "ro_RO", "el_GR")

# {} is the value. English above all, because that is what the names' model reads; the others for everything else.
EMAIL = (
    "Please write to {} before the end of the week.",
    "Contact: {}, or the desk on the second floor.",
    "From: {}\nSubject: minutes of the meeting",
    "Bitte senden Sie die Unterlagen an {}.",
    "<{}> wrote: the figures of March are wrong.",
    "Pour toute question, {} reste à votre disposition.",
    "The invoice was sent to {} and to nobody else.",
    "[mail us](mailto:{}) if the link does not work",
    "user={} logged in at 08:14",
    "Scrivere a {}; si risponde entro due giorni.",
    "cc {}; the rest of the list was dropped",
    '{{"name": "K.", "email": "{}", "age": 41}}',
)
HELD_EMAIL = (
    "Her address is {} since she moved to the Oslo office.",
    "Reply-To: {}\nDate: Tue, 4 Mar 2025 10:12:00 +0100",
    "See the thread with {}, the lawyers and the vendor.",
    "Send CV + cover letter → {}",
    "O contacto é {}, por favor confirme.",
    "contact={}|role=admin|active=1",
)
CARD = (
    "I paid with {} and it was declined twice.",
    "Card number: {}, valid through 09/27.",
    "The refund for order 48213 goes back to {}.",
    "Meine Kreditkarte {} wurde gestern gesperrt.",
    "card={}; amount=19.90; currency=EUR",
    "Please charge {} for the two nights.",
    "She read out {} over the phone, then hung up.",
    "Ma carte ({}) a été débitée deux fois le 12 mars 2024.",
    "numero de tarjeta {} CVV 123",
    "Corporate card ending in the last digits of {}",
)
HELD_CARD = (
    "The number on the slip reads {}.",
    "PAN {} was stored in clear text until May 2023",
    "Kortnummer {} er spærret.",
    "Pay with card no. {} (exp. 11/2028).",
    "2024-03-02 14:11 POS 8841 {} 54.20 EUR approved",
)
IBAN = (
    "Transfer the rent to {} by the third of the month.",
    "IBAN: {}\nBIC: see below",
    "Our new account is {}; the old one is closed.",
    "Bitte überweisen Sie 249,00 EUR auf das Konto {}.",
    "Le virement sur {} a été rejeté.",
    "The salary of March went to {} by mistake.",
    "iban={}&amount=120",
    "Bonifico su {} entro il 30 giugno.",
    "Account holder: see attachment, {}.",
    "Refund account ({}) confirmed on 2 May 2023.",
)
HELD_IBAN = (
    "Please use the account {} for all invoices from 1 July 2024 on.",
    "Direct debit from {} was returned unpaid.",
    "Kontoen {} er lukket.",
    "bank details - {} - beneficiary as above",
    '{{"iban": "{}", "currency": "EUR"}}',
)
PHONE = (
    "Call me on {} after six.",
    "Phone: {}",
    "You can reach me at {}, best in the morning.",
    "Her mobile number is {}, please do not pass it on.",
    "Tel. {} | Fax on request",
    "Telefon: {} (Sekretariat)",
    "Rufen Sie uns an: {}.",
    "Tél. : {} du lundi au vendredi",
    "Mi teléfono es {}.",
    "My phone number is {} if anything is unclear.",
    "For the key, ring the caretaker on {}.",
    "Text me at {} when you land.",
    "Mobile {}, office hours only",
    "Handy: {}",
    "WhatsApp {}",
    "Telefono {} oppure per posta.",
    "Bel {} voor een afspraak.",
    "cell phone {}",
)
HELD_PHONE = (
    "If the alarm goes off, phone {}.",
    "Mobile: {} (after hours)",
    "Contact number {} or by post.",
    "The driver can be reached on {} until noon.",
    "Tel: {}",
    "Fax no. {}",
    "Reception's telephone number is {}.",
    "Give me a call at {} tomorrow.",
    "Telefone: {}",
    "Telefon {} eller mail.",
)
# Nothing says that it is a telephone: only for what is written so that it can be nothing else.
BARE_PHONE = (
    "The caretaker ({}) has the key.",
    "Ask Maria, {}, about the boiler.",
    "{} - leave a message after the tone.",
)
PERSON = (
    "{} joined the company in 2019 and leads the audit team.",
    "The letter was signed by {} on behalf of the board.",
    "Yesterday {} called about the broken boiler.",
    "I met {} at the conference, and we talked about the contract.",
    "Please forward this to {} and to the accountant.",
    "According to {}, the shipment left the warehouse on Monday.",
    "My neighbour {} has the spare key.",
    "The patient, {}, was discharged after three days.",
    "Dear {},\nthank you for your letter of 3 May.",
    "{} and the landlord agreed on a new rent.",
    "The contract names {} as the tenant of the flat.",
    "{} told the police that nobody had entered the house.",
    "Her new manager is {}, who came from the Leeds office.",
    "We hired {} as a nurse for the night shift.",
    "Could you ask {} whether the invoice was paid?",
    "This was a birthday present for {}, who turned forty.",
    "The complaint of {} was rejected by the court.",
    "{}'s claim covers the water damage in the kitchen.",
    "Best regards,\n{}",
    "Attendees: {} (chair), two guests and the secretary.",
)
HELD_PERSON = (
    "On Friday {} handed in the keys and left.",
    "The minutes were taken by {}.",
    "{} will be the contact for all questions about the lease.",
    "Thank you, {}, for your quick reply.",
    "A parcel for {} is waiting at the reception.",
    "We talked to {} about the delayed payment.",
    "Tenant: {}; rent due on the third of each month.",
    "In her statement {} said that the brakes had failed.",
    "The email from {} was never answered.",
    "{} was born in 1984 and has two children.",
    "Kind regards\n{}\nAccounts",
    "Is {} still working in the Hamburg branch?",
)
KEY = (
    "Use {} for the staging server.",
    "I pasted {} into the chat, please rotate it.",
    "The log says:\n{}\nand then nothing.",
    "Here it is: {}.",
    "In the config of the old machine I found {} and left it there.",
    "$ export SETUP=1\n{}\n$ make deploy",
    "- {}\n- restart the service",
    "Somebody committed {} on Friday.",
)
HELD_KEY = (
    "Do not use {} any more.",
    "```\n{}\n```",
    "He wrote: {} — and that was it.",
    "old value {} / new value to follow",
    "> {}",
)

# Of a name these may stay.
TITLES = {
    "Mrs",
    "Miss",
    "Prof",
    "Univ",
    "Dipl",
    "Ing",
    "MBA",
    "Eng",
    "DVM",
    "DDS",
    "PhD",
    "Dott",
    "Sig",
    "Sra",
    "Sir",
    "Med",
}

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


def _faker(pick: random.Random, locale: str) -> Faker:
    faker = _opened(locale)
    faker.seed_instance(pick.getrandbits(64))
    return faker


def _email(pick: random.Random, held: bool) -> Made:
    locale = pick.choice(HELD_LOCALES if held else LOCALES)
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
    return Made("email", pick.choice(HELD_EMAIL if held else EMAIL).format(value), value, held, locale)


def _card(pick: random.Random, held: bool) -> Made:
    faker = _faker(pick, "en_US")
    kind = pick.choice(("visa16", "mastercard", "amex", "discover", "diners", "jcb", "visa19", "visa16", "mastercard"))
    number = faker.credit_card_number(kind)
    groups = {15: (4, 6, 5), 14: (4, 6, 4)}.get(
        len(number), (4,) * (len(number) // 4) + ((len(number) % 4,) if len(number) % 4 else ())
    )
    separator = pick.choice(("", " ", " ", "-", "\u00a0"))
    value = separator.join(_cut(number, groups))
    return Made("card", pick.choice(HELD_CARD if held else CARD).format(value), value, held, kind)


def _iban(pick: random.Random, held: bool) -> Made:
    locale = pick.choice(HELD_ACCOUNTS if held else ACCOUNTS)
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
    return Made("iban", pick.choice(HELD_IBAN if held else IBAN).format(value), value, held, locale)


def _cut(text: str, groups: tuple[int, ...]) -> list[str]:
    parts, at = [], 0
    for size in groups:
        parts.append(text[at : at + size])
        at += size
    return [part for part in parts if part]


# What people write, by the plans: # is a digit, N one from 2 to 9.
PLANS = {
    "US": (
        "(N##) N##-####", "N##-N##-####", "N##.N##.####", "+1 N## N## ####", "+1 (N##) N##-####", "1-8##-N##-####",
        "+1N##N######", "(N##)N##-#### ext. ##",
    ),
    "GB": (
        "020 7### ####", "+44 20 7### ####", "07### ######", "+44 (0)161 ### ####", "(01632) ######",
        "+447#########", "0044 20 7### ####", "01## ### ####",
    ),
    "DE": (
        "030 #######", "0171 / #######", "+49 (0)89 ######", "+49 30 ### ## ##", "0049 40 ######-##",
        "(0221) ### ## ##", "0151-########", "+4917########", "+49 (0) 711 / ####-###",
    ),
    "FR": (
        "01 ## ## ## ##", "06.##.##.##.##", "+33 6 ## ## ## ##", "+33 (0)4 ## ## ## ##", "0033 1 ## ## ## ##",
        "07########",
    ),
    "ES": ("+34 6## ### ###", "6## ## ## ##", "9# ### ## ##", "+34 9########", "6## ### ###"),
    "BR": ("+55 (11) 9####-####", "(21) ####-####", "+55 11 9#### ####", "(11) 9.####-####"),
    "IT": ("+39 06 #### ####", "02 #### ####", "+39 3## ### ####", "3## ### ####", "0039 011 ######"),
    "NL": ("020-### ####", "06 ########", "+31 (0)20 ### ## ##", "+31 6 ## ## ## ##", "06-########"),
    "SE": ("08-### ### ##", "070-### ## ##", "+46 (0)8 ### ## ##", "+46 70 ### ## ##"),
    "PL": ("+48 ### ### ###", "### ### ###", "22 ### ## ##", "+48 22 ### ## ##"),
    "IN": ("+91 9#### #####", "09#########", "+91-22-####-####", "9#### #####"),
    "AU": ("(02) #### ####", "04## ### ###", "+61 4## ### ###", "+61 2 #### ####"),
    "CH": ("044 ### ## ##", "+41 44 ### ## ##", "+41 (0)79 ### ## ##", "079 ### ## ##"),
    "AT": ("01/### ## ##", "+43 1 ### ## ##", "0664 / ### ## ##", "+43 (0)664 #######"),
}  # fmt: skip
HELD_PLANS = {
    "DK": ("+45 ## ## ## ##", "+45 #### ####", "## ## ## ##"),
    "NO": ("+47 ### ## ###", "+47 ## ## ## ##", "9## ## ###"),
    "FI": ("+358 40 ### ####", "040 ### ####", "09 ### ####", "+358 (0)9 ######"),
    "BE": ("+32 2 ### ## ##", "02 ### ## ##", "0475 ## ## ##", "+32 (0)475 ## ## ##"),
    "CZ": ("+420 ### ### ###", "+420 2## ### ###"),
    "PT": ("+351 9## ### ###", "21# ### ###", "9## ### ###"),
    "IE": ("+353 1 ### ####", "01 ### ####", "087 ### ####", "(01) ### ####"),
    "NZ": ("+64 21 ### ###", "(09) ### ####", "021 ### ####", "0800 ### ###"),
    "ZA": ("+27 11 ### ####", "011 ### ####", "082 ### ####"),
    "JP": ("+81 3-####-####", "03-####-####", "090-####-####"),
    "SG": ("+65 6### ####", "6### ####"),
    "IL": ("+972 3-###-####", "03-###-####", "052-###-####"),
    "US": ("N##/N##-####", "1 (N##) N##-####", "N## N## ####", "+1.N##.N##.####"),
}  # fmt: skip


def _phone(pick: random.Random, held: bool) -> Made:
    country = pick.choice(HELD_LOCALES if held else LOCALES)
    value = _faker(pick, country).phone_number()
    if pick.random() < 0.6:
        plans = HELD_PLANS if held else PLANS
        country = pick.choice(sorted(plans))
        plan = pick.choice(plans[country])
        value = "".join(
            {"#": str(pick.randrange(10)), "N": str(pick.randrange(2, 10))}.get(sign, sign) for sign in plan
        )
    templates = HELD_PHONE if held else PHONE
    if value.startswith(("+", "00")) and pick.random() < 0.3:
        templates = BARE_PHONE
    return Made("phone", pick.choice(templates).format(value), value, held, country)


def _person(pick: random.Random, held: bool) -> Made:
    locale = pick.choice(HELD_LOCALES if held else LOCALES)
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
    return Made(
        "person", pick.choice(HELD_PERSON if held else PERSON).format(value), value, held, f"{locale} {shape:.1f}"
    )


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
    return Made("key", pick.choice(HELD_KEY if held else KEY).replace("{}", shown), value, held, form)


_MAKERS: dict[str, Callable[[random.Random, bool], Made]] = {
    "email": _email,
    "card": _card,
    "iban": _iban,
    "phone": _phone,
    "key": _key,
    "person": _person,
}
