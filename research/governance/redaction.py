"""Redactors: a text goes in, the same text comes out without what must not leave.

`BaseRedactor` needs nothing but this package: keys, tokens and passwords, and with `kinds="pii"` mail addresses, cards,
accounts, telephone and identity numbers too. For names and addresses of people it takes a language model:
`research.governance.people`. Any other class with `redact(text) -> str` may stand in their place; whoever calls one
does it through `SafeRedactor`, which fails closed: a text comes out made safe, or not at all.

`Placeholders` stand in place of what was taken out: `<PERSON_1>`, and the same again for the same person. One belongs
to one context: all texts that are redacted with it share its numbers. It keeps no value, only keyed hashes that mean
nothing outside this process, so nothing can be read out of it.

A redactor that raises, hangs, answers nonsense or cannot be loaded costs the texts it was given. Of them nothing is
told but how many and why (`error`, `timeout`, `unavailable`): no text, no message of an exception, no traceback,
because each of them may quote what it choked on.
"""

from __future__ import annotations

import re
import secrets
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, runtime_checkable

from research.errors import RedactionError, UsageError
from research.governance.keys import assigned, find_keys
from research.governance.patterns import Finding, all_words, cards, emails, fold, ibans, national_ids, phones
from research.observe import NULL_RECORDER, Recorder, logger_of
from research.parallel import Workers

if TYPE_CHECKING:
    from research.settings import Settings
    from research.store import Reader

# Of two that overlap, the first of these names the whole.
SECRET_KINDS = ("private_key", "key", "password")
PATTERN_KINDS = ("iban", "card", "national_id", "email", "phone")
MODEL_KINDS = ("address", "person")
KINDS = (*SECRET_KINDS, *PATTERN_KINDS, *MODEL_KINDS)

SECRETS = frozenset(SECRET_KINDS)
PII = SECRETS | frozenset(PATTERN_KINDS)

PLACEHOLDER = re.compile(r"<[A-Z]{2,16}(?:_[A-Z]{2,16}){0,2}_[0-9]{1,6}>")

_WORD = re.compile(r"[^\W\d_]++")


class Placeholders:
    def __init__(self) -> None:
        self._salt = secrets.token_bytes(16)
        self._lock = Lock()
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._counts: Counter[str] = Counter()
        self._people: dict[int, frozenset[bytes]] = {}

    def name(self, kind: str, value: str) -> str:
        """Return the placeholder for a value of a kind ("person", "email", …), without regard to case, spaces and
        signs."""
        with self._lock:
            number = self._person(value) if kind == "person" else self._number(kind, essence(kind, value))
        return f"<{kind.upper()}_{number}>"

    def knows_person(self, word: str) -> bool:
        """Return whether a word, in small letters, is among the names of somebody who was named in full."""
        hashed = self._hash(word)
        with self._lock:
            return any(hashed in names for names in self._people.values() if len(names) > 1)

    def _number(self, kind: str, value: str) -> int:
        key = kind, self._hash(value)
        if key not in self._numbers:
            self._counts[kind] += 1
            self._numbers[key] = self._counts[kind]
        return self._numbers[key]

    def _person(self, value: str) -> int:
        """Somebody whose words are among a known person's, or the other way round, is that person, if it can be only
        one: Ms Lopez is Maria Lopez, until there is an Ana Lopez too."""
        words = frozenset(self._hash(word) for word in essence("person", value).split())
        same = [number for number, known in self._people.items() if words and (words <= known or known <= words)]
        exact = [number for number in same if self._people[number] == words]
        if len(exact or same) != 1:
            number = self._number("person", essence("person", value))
            self._people.setdefault(number, words)
            return number
        [number] = exact or same
        self._people[number] |= words
        return number

    def _hash(self, value: str) -> bytes:
        return blake2b(value.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=16).digest()


def essence(kind: str, value: str) -> str:
    """Return a value without what may differ between two mentions of the same."""
    if kind == "person":
        words = _WORD.findall(re.sub(r"['’]s\b", "", value).casefold())
        titles = all_words("titles")
        return " ".join(word for word in words if word not in titles and len(word) > 1) or value.casefold()
    if kind in {"card", "iban", "phone", "national_id"}:
        return "".join(sign for sign in value.casefold() if sign.isalnum())
    if kind in {"email", "address"}:
        return " ".join(value.casefold().split())
    return value  # of keys and passwords every character counts


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in order, none of which overlap: those that do become one, so that nothing of either is left."""
    joined: list[Finding] = []
    for each in sorted(findings):
        if joined and each.start < joined[-1].end:
            last = joined[-1]
            joined[-1] = Finding(last.start, max(last.end, each.end), min(last.kind, each.kind, key=KINDS.index))
        else:
            joined.append(each)
    return joined


_FINDERS: Sequence[tuple[frozenset[str], Callable[[str], Iterator[Finding]]]] = (
    (SECRETS, find_keys),
    (SECRETS, assigned),
    (frozenset({"email"}), emails),
    (frozenset({"iban"}), ibans),
    (frozenset({"card"}), cards),
    (frozenset({"national_id"}), national_ids),
    (frozenset({"phone"}), phones),
)
_KEPT = re.compile(rf"{PLACEHOLDER.pattern}|§§secret\([\w.-]{{1,64}}\)")  # what an earlier pass has put there


@runtime_checkable
class RedactorProtocol(Protocol):
    def redact(self, text: str) -> str:
        """Return the text made safe. Raises where that cannot be done; the text it was given is then not to be used."""
        ...


class NoopRedactor:
    """Lets everything pass."""

    def redact(self, text: str) -> str:
        return text


class BaseRedactor:
    """Rules only: quick, offline, the same everywhere.

    `kinds` is "secrets", "pii" or names out of `PII`. `allow` has words that stay, `*` standing for anything.
    """

    def __init__(self, kinds: str | Iterable[str] = "secrets", allow: Iterable[str] = ()) -> None:
        self.kinds = _kinds(kinds)
        words = [word.strip() for word in allow if word.strip()]
        joined = "|".join(".*".join(map(re.escape, word.split("*"))) for word in words)
        self._allowed = re.compile(joined, re.I | re.S) if words else None

    def findings(self, text: str, placeholders: Placeholders | None) -> Iterator[Finding]:
        """Yield what the rules find in a folded text, and what is known from other texts of the context."""
        for kinds, finder in _FINDERS:
            if kinds & self.kinds:
                yield from finder(text)

    def find(self, text: str, placeholders: Placeholders | None = None) -> list[Finding]:
        """Return what has to go, in order and without overlaps, and without what is allowed to stay."""
        kept = [match.span() for match in _KEPT.finditer(text)] if "<" in text or "§§" in text else []
        folded = fold(text)
        found = (
            Finding(*folded.original(start, end), kind)
            for start, end, kind in self.findings(folded.text, placeholders)
            if kind in self.kinds
        )
        return merged(each for each in found if not self._stays(text, each, kept))

    def redact(self, text: str, placeholders: Placeholders | None = None) -> str:
        """Return the text with `<KIND_n>` for each finding. Without placeholders of a context the numbers are this
        text's."""
        names = placeholders or Placeholders()
        parts, at = [], 0
        for start, end, kind in self.find(text, placeholders):
            parts += [text[at:start], names.name(kind, text[start:end])]
            at = end
        return "".join([*parts, text[at:]])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(sorted(self.kinds))})"

    def _stays(self, text: str, finding: Finding, kept: Sequence[tuple[int, int]]) -> bool:
        """What is allowed stays, and what an earlier pass has put there. A secret that reaches beyond it goes."""
        at = bisect_left(kept, (finding.end,)) - 1
        if at >= 0 and finding.start < kept[at][1]:
            return finding.kind not in SECRETS or (kept[at][0] <= finding.start and finding.end <= kept[at][1])
        if self._allowed is None:
            return False
        value = text[finding.start : finding.end]
        return bool(self._allowed.fullmatch(value) or self._allowed.fullmatch(essence(finding.kind, value)))


def _kinds(kinds: str | Iterable[str]) -> frozenset[str]:
    if isinstance(kinds, str):
        kinds = {"secrets": SECRETS, "pii": PII}.get(kinds, {kinds})
    named = frozenset(kinds)
    unknown = sorted(named - PII)
    if unknown:
        model = f"; {', '.join(MODEL_KINDS)} need PresidioRedactor" if set(unknown) & set(KINDS) else ""
        raise UsageError(
            f"the base redactor knows no kind {unknown[0]!r}{model}",
            hint=f"choose from: secrets, pii, {', '.join(kind for kind in KINDS if kind in PII)}",
        )
    return named


class Chain:
    """Redactors one after the other, with the numbers of one context."""

    def __init__(self, *redactors: RedactorProtocol) -> None:
        self._redactors = redactors

    def redact(self, text: str, placeholders: Placeholders | None = None) -> str:
        for each in self._redactors:
            text = redacting(each, placeholders)(text)
        return text

    def warm_up(self) -> None:
        for each in self._redactors:
            warm_up(each)

    def __repr__(self) -> str:
        return f"Chain({', '.join(map(repr, self._redactors))})"


def redacting(redactor: RedactorProtocol, placeholders: Placeholders | None) -> Callable[[str], str]:
    """Return `redact`, with the numbers of one context where the redactor has any."""
    if isinstance(redactor, BaseRedactor | Chain):
        return partial(redactor.redact, placeholders=placeholders)
    return redactor.redact


def warm_up(redactor: RedactorProtocol) -> None:
    """Load what a redactor needs, if it has anything to load."""
    warm = getattr(redactor, "warm_up", None)
    if warm is not None:
        warm()


def redactor_of(
    settings: Settings, *, environment: Mapping[str, str] | None = None, reader: Reader | None = None
) -> RedactorProtocol:
    """Make the redactor of the settings `redact`, `redact_language`, `redact_allow` and `secrets` together. Raises
    where something of it is missing; `SafeRedactor(lambda: redactor_of(settings))` then drops everything. `reader`: of
    the catalog that knows which places were ingested, for a file of secrets lies in none of them."""
    redactor: RedactorProtocol = NoopRedactor()
    if settings.redact == "secrets":
        redactor = BaseRedactor(allow=settings.redact_allow)
    elif settings.redact != "off":
        from research.governance.people import PresidioRedactor

        redactor = PresidioRedactor(settings.redact_allow, settings.redact_language.replace(" ", "").split("+"))
    if not settings.secrets:
        return redactor
    from research.governance.masking import SecretMasker, known_secrets

    return Chain(SecretMasker(known_secrets(settings.secrets, environment=environment, reader=reader)), redactor)


ERROR, TIMEOUT, UNAVAILABLE = "error", "timeout", "unavailable"
SECONDS = 5.0

_REASONS = {ERROR, TIMEOUT, UNAVAILABLE}  # another word might be a text

_MOST_STUCK = 4  # threads that one redactor may leave behind; after that it is not asked again while they hang

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Redacted:
    """The texts in the order they were given, None for each that was dropped; and why, by position."""

    texts: tuple[str | None, ...] = field(repr=False)
    dropped: Mapping[int, str]

    @property
    def reasons(self) -> dict[str, int]:
        """Return how many were dropped for which reason; this may be shown, logged and counted."""
        return dict(Counter(self.dropped.values()))


class SafeRedactor:
    """A redactor behind a deadline and a wall. Give it the redactor, or what opens it: one that cannot be opened
    (a missing extra) drops everything, too.

    `seconds` is for one call with all its texts, loading included. Where it runs out, the text at hand and those after
    it are dropped. A thread cannot be ended in Python: one that hangs stays behind, and never more than a few do.
    """

    def __init__(
        self,
        redactor: RedactorProtocol | Callable[[], RedactorProtocol],
        *,
        seconds: float = SECONDS,
        recorder: Recorder = NULL_RECORDER,
    ) -> None:
        if seconds <= 0:
            raise UsageError(f"a deadline of {seconds:g} seconds leaves no time to redact anything")
        self._redactor = redactor
        self._opened: RedactorProtocol | None = None
        self._seconds = seconds
        self._recorder = recorder
        self._opening = threading.Lock()
        self._workers = Workers("ctx-redaction", _MOST_STUCK)

    def redact_all(self, texts: Iterable[str], placeholders: Placeholders | None = None) -> Redacted:
        """Redact all texts with the numbers of one context. Never raises for what a redactor does."""
        given = tuple(texts)
        if not given:
            return Redacted((), {})
        over = threading.Event()
        done: list[tuple[str | None, str]] = []
        self._workers.start(partial(self._work, given, placeholders or Placeholders(), done, over)).wait(self._seconds)
        over.set()
        results = [*done, *[(None, TIMEOUT)] * len(given)][: len(given)]  # as far as it is now; the rest is too late
        result = Redacted(
            tuple(safe for safe, _ in results), {at: why for at, (safe, why) in enumerate(results) if safe is None}
        )
        for reason, count in result.reasons.items():
            self._recorder.count("redaction_dropped", count, reason=reason)
        if result.dropped:
            reasons = ", ".join(f"{count} × {reason}" for reason, count in sorted(result.reasons.items()))
            logger_of("governance").warning(
                "redaction dropped %d of %d texts: %s", len(result.dropped), len(given), reasons
            )
        return result

    def warm_up(self) -> None:
        """Load what the redactor needs before the first text waits for it. No text is in play yet, so whatever is
        wrong is raised as it is."""
        warm_up(self._open())

    def __repr__(self) -> str:
        return f"SafeRedactor({self._seconds:g} s)"

    def _work(
        self,
        texts: Sequence[str],
        placeholders: Placeholders,
        done: list[tuple[str | None, str]],
        over: threading.Event,
    ) -> None:
        redact, reason = _attempt(lambda: redacting(self._open(), placeholders), failure=UNAVAILABLE)
        for text in texts:
            safe: object = None
            if redact is not None:
                safe, reason = _attempt(partial(redact, text))
            if over.is_set():
                return
            done.append((safe, "") if isinstance(safe, str) else (None, reason or ERROR))  # something that is no text

    def _open(self) -> RedactorProtocol:
        with self._opening:
            if self._opened is None:
                given = self._redactor
                # A class of redactors has the method, too.
                is_one = isinstance(given, RedactorProtocol) and not isinstance(given, type)
                opened = given if is_one else cast("Callable[[], RedactorProtocol]", given)()
                self._opened = cast("RedactorProtocol", opened)
            return self._opened


def _attempt(call: Callable[[], T], failure: str = ERROR) -> tuple[T | None, str]:
    """What a foreign call gives, or the reason why not. Nothing of an exception leaves this function: its message and
    the frames of its traceback hold the text."""
    try:
        return call(), ""
    except RedactionError as error:
        return None, error.reason if error.reason in _REASONS else failure
    except BaseException:  # noqa: BLE001  a thread that dies of SystemExit or a MemoryError would be told on stderr
        return None, failure
