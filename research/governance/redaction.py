"""Redactors: a text goes in, the same text comes out without what must not leave.

`BaseRedactor` needs nothing but this package: keys, tokens and passwords, and with `kinds="pii"` mail addresses, cards,
accounts, telephone and identity numbers too. For names and addresses of people it takes a language model:
`research.governance.presidio`. Any other class with `redact(text) -> str` may stand in their place; whoever calls one
does it through `research.governance.fail_closed`, so that a text whose redactor fails is dropped and never passes raw.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from research.errors import UsageError
from research.governance.assignments import assigned
from research.governance.findings import (
    KINDS,
    MODEL_KINDS,
    OPTIONAL_KINDS,
    PATTERN_KINDS,
    SECRET_KINDS,
    Finding,
    merged,
)
from research.governance.folded import fold
from research.governance.keys import keys
from research.governance.national_ids import national_ids
from research.governance.patterns import addresses_of_machines, cards, emails, hardware_addresses, ibans
from research.governance.phones import phones
from research.governance.placeholders import PLACEHOLDER, Placeholders, essence
from research.governance.words import LANGUAGES, labels

if TYPE_CHECKING:
    from pathlib import Path

    from research.settings import Settings

LEVELS = ("off", "secrets", "pii")
SECRETS = frozenset(SECRET_KINDS)
PII = SECRETS | frozenset(PATTERN_KINDS)
BASE_KINDS = PII | frozenset(OPTIONAL_KINDS)

_KEPT = re.compile(rf"{PLACEHOLDER.pattern}|§§secret\([\w.-]{{1,64}}\)")  # what an earlier pass has put there


@runtime_checkable
class RedactorProtocol(Protocol):
    def redact(self, text: str) -> str:
        """The text made safe. Raises where that cannot be done; the text it was given is then not to be used."""
        ...


@runtime_checkable
class NumberingRedactor(RedactorProtocol, Protocol):
    """One whose placeholders can be shared by several texts."""

    def within(self, placeholders: Placeholders) -> RedactorProtocol:
        """The same redactor with the numbers of one context."""
        ...


class NoopRedactor:
    """Lets everything pass."""

    def redact(self, text: str) -> str:
        return text


class SpanRedactor:
    """What redactors share that say where something stands: allow list, overlaps, placeholders."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._allowed = allowed_pattern(allow)

    def findings(self, text: str) -> Iterator[Finding]:
        raise NotImplementedError

    def known_findings(self, text: str, placeholders: Placeholders) -> Iterator[Finding]:
        """What is known from other texts of the same context; nothing, where rules see all there is."""
        return iter(())

    def find(self, text: str, placeholders: Placeholders | None = None) -> list[Finding]:
        """What has to go, in order and without overlaps, and without what is allowed to stay."""
        kept = [match.span() for match in _KEPT.finditer(text)] if "<" in text or "§§" in text else []
        found = [*self.findings(text), *(self.known_findings(text, placeholders) if placeholders else ())]
        return merged(each for each in found if not self._stays(text, each, kept))

    def redact(self, text: str, placeholders: Placeholders | None = None) -> str:
        """The text with `<KIND_n>` for each finding. Without placeholders of a context the numbers are this text's."""
        placeholders = Placeholders() if placeholders is None else placeholders
        parts, at = [], 0
        for start, end, kind in self.find(text, placeholders):
            parts += [text[at:start], placeholders.name(kind, text[start:end])]
            at = end
        return "".join([*parts, text[at:]])

    def within(self, placeholders: Placeholders) -> RedactorProtocol:
        return _Within(self, placeholders)

    def _stays(self, text: str, finding: Finding, kept: Sequence[tuple[int, int]]) -> bool:
        """What is allowed stays, and what an earlier pass has put there. A secret that reaches beyond it goes."""
        at = bisect_left(kept, (finding.end,)) - 1
        if at >= 0 and finding.start < kept[at][1]:
            return finding.kind not in SECRETS or (kept[at][0] <= finding.start and finding.end <= kept[at][1])
        if self._allowed is None:
            return False
        value = text[finding.start : finding.end]
        return bool(self._allowed.fullmatch(value) or self._allowed.fullmatch(essence(finding.kind, value)))


class _Within:
    def __init__(self, redactor: SpanRedactor, placeholders: Placeholders) -> None:
        self._redactor = redactor
        self._placeholders = placeholders

    def redact(self, text: str) -> str:
        return self._redactor.redact(text, self._placeholders)


class BaseRedactor(SpanRedactor):
    """Rules only: quick, offline, the same everywhere.

    `kinds` is "secrets", "pii" or names out of `BASE_KINDS` ("ip" and "mac" are in neither). `allow` has words that
    stay, `*` standing for anything. `languages` says whose words for "password" and "phone" are known; all by default.
    """

    def __init__(
        self,
        kinds: str | Iterable[str] = "secrets",
        allow: Iterable[str] = (),
        languages: Iterable[str] = LANGUAGES,
    ) -> None:
        super().__init__(allow)
        self.kinds = _kinds(kinds)
        self.languages = tuple(languages)
        self._labels = labels(self.languages)

    def findings(self, text: str) -> Iterator[Finding]:
        folded = fold(text)
        for start, end, kind in self._findings(folded.text):
            if kind in self.kinds:
                yield Finding(*folded.original(start, end), kind)

    def _findings(self, text: str) -> Iterator[Finding]:
        if self.kinds & SECRETS:
            yield from keys(text)
            yield from assigned(text, self._labels)
        if "email" in self.kinds:
            yield from emails(text)
        if "iban" in self.kinds:
            yield from ibans(text)
        if "card" in self.kinds:
            yield from cards(text)
        if "national_id" in self.kinds:
            yield from national_ids(text)
        if "phone" in self.kinds:
            yield from phones(text, self._labels)
        if "ip" in self.kinds:
            yield from addresses_of_machines(text)
        if "mac" in self.kinds:
            yield from hardware_addresses(text)

    def __repr__(self) -> str:
        return f"BaseRedactor({', '.join(sorted(self.kinds))})"


def open_redactor(
    level: str = "secrets", *, allow: Iterable[str] = (), languages: Iterable[str] = ("en",)
) -> RedactorProtocol:
    """The redactor that a setting names: "off", "secrets", or "pii", which needs the extra `redact`."""
    if level == "off":
        return NoopRedactor()
    if level == "secrets":
        return BaseRedactor(allow=allow)
    if level == "pii":
        from research.governance.presidio import PresidioRedactor

        return PresidioRedactor(allow=allow, languages=languages)
    raise UsageError(f"redact cannot be {level!r}", hint=f"choose one of: {', '.join(LEVELS)}")


def redactor_of(
    settings: Settings, *, environment: Mapping[str, str] | None = None, ingested: Iterable[Path] = ()
) -> RedactorProtocol:
    """What the settings `redact`, `redact_language`, `redact_allow` and `secrets` make together. Raises where something
    of it is missing; `SafeRedactor(lambda: redactor_of(settings))` then drops everything, and says why."""
    redactor = open_redactor(
        settings.redact, allow=settings.redact_allow, languages=settings.redact_language.replace(" ", "").split("+")
    )
    if not settings.secrets:
        return redactor
    from research.governance.masking import MaskingRedactor, SecretMasker
    from research.governance.secret_sources import known_secrets

    known = known_secrets(settings.secrets, environment=environment, ingested=ingested)
    return MaskingRedactor(SecretMasker(known), redactor)


def allowed_pattern(allow: Iterable[str]) -> re.Pattern[str] | None:
    """Words that stay, whatever their case, `*` for anything; None if there are none."""
    words = [word.strip() for word in allow]
    if not any(words):
        return None
    return re.compile("|".join(".*".join(map(re.escape, word.split("*"))) for word in words if word), re.I | re.S)


def _kinds(kinds: str | Iterable[str]) -> frozenset[str]:
    if isinstance(kinds, str):
        named = {"secrets": SECRETS, "pii": PII}.get(kinds, frozenset({kinds}))
    else:
        named = frozenset(kinds)
    unknown = sorted(named - BASE_KINDS)
    if unknown:
        model = f"; {', '.join(MODEL_KINDS)} need PresidioRedactor" if set(unknown) & set(KINDS) else ""
        raise UsageError(
            f"the base redactor knows no kind {unknown[0]!r}{model}",
            hint=f"choose from: secrets, pii, {', '.join(kind for kind in KINDS if kind in BASE_KINDS)}",
        )
    return named
