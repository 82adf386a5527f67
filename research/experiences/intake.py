"""What may be told of an experience, checked: fields, lengths, choices, times. Whatever is wrong names the choices.

Text is data. What cannot be stored (half a surrogate pair, NUL) is replaced.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from research.errors import UsageError
from research.experiences.records import AXES, DOMAINS, OUTCOMES, STRATEGIES, TIERS, Experience, tier_of
from research.filters import read_time
from research.text import kind_name, storable, stored_time

if TYPE_CHECKING:
    from research.settings import Settings

LONGEST_TEXT = 5_000  # characters of a field: a page. What is longer is a document
LONGEST_RECORD = 60_000  # characters of all of it as JSON; the catalog takes a little more
MOST_ITERATIONS = 100_000

NEEDED = ("goal", "hypothesis", "action", "prediction")
TEXTS = (*NEEDED, "outcome_result", "surprise", "root_cause", "lesson")
_TIMES = ("started_at", "updated_at", "closed_at")
# Other names for the same, as other programs and the seed write them.
_NAMES = {
    "outcome_status": "outcome",
    "result": "outcome_result",
    "tier": "confidence_tier",
    "iteration": "iteration_count",
    "iterations": "iteration_count",
    "created_at": "started_at",
    "ghap_id": "id",
}
_OUTCOME = {"status": "outcome", "result": "outcome_result", "captured_at": "closed_at"}  # that comes as an object
# Fields that may come as objects: what is told of each in which order, and what stands between.
_NESTED = {"root_cause": (": ", "category", "description"), "lesson": ("\n", "what_worked", "takeaway")}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Choices:
    """The domains and strategies there are: our own, and those of the settings."""

    domains: tuple[str, ...] = DOMAINS
    strategies: tuple[str, ...] = STRATEGIES

    @classmethod
    def of(cls, settings: Settings) -> Choices:
        return cls(
            tuple(dict.fromkeys((*DOMAINS, *map(_plain, settings.experience_domains)))),
            tuple(dict.fromkeys((*STRATEGIES, *map(_plain, settings.experience_strategies)))),
        )


def _plain(text: str) -> str:
    """One of several as it is written: "Root cause analysis" and root_cause_analysis are root-cause-analysis."""
    return "-".join(text.strip().casefold().replace("_", " ").replace("-", " ").split())


def choose(what: str, given: object, among: Sequence[str], more: str = "") -> str:
    """One of the choices. Raises UsageError with all of them."""
    plain = {_plain(each): each for each in among}
    found = plain.get(_plain(given)) if isinstance(given, str) else None
    if found is None:
        hint = f"choose one of: {', '.join(among)}" + (f"; {more}" if more else "")
        raise UsageError(f"there is no {what} {_shown(given)}", hint=hint)
    return found


def axis_of(given: object) -> str:
    return choose("axis", given, AXES)


def outcome_of(given: object) -> str:
    return choose("outcome", given, OUTCOMES)


def read_fields(given: Mapping[str, Any], choices: Choices) -> dict[str, Any]:
    """The fields of an experience that are there, each as it is stored. What is unknown or wrong raises UsageError."""
    if not isinstance(given, Mapping):
        raise UsageError(f"an experience is an object, not {kind_name(given)}", hint='{"goal": "…", "hypothesis": "…"}')
    known = Experience.__slots__
    fields: dict[str, Any] = {}
    for name, value in _flat(given):
        if name not in known:
            raise UsageError(f"an experience has no field {_shown(name)}", hint=f"it has: {', '.join(known)}")
        if value is not None and value != "":
            fields[name] = _field(name, value, choices)
    return fields


def new_experience(fields: Mapping[str, Any], new_id: str, now: datetime) -> Experience:
    """One of its own from fields that were read; closed if they have an outcome. Raises UsageError for one that lacks
    what it needs."""
    missing = [name for name in NEEDED if not fields.get(name)]
    if missing:
        raise UsageError(
            f"an experience needs {_listed(missing)}",
            hint="say what you want, what you believe, what you do about it, and what will happen if you are right",
        )
    experience = Experience(**{**fields, "id": fields.get("id") or new_id})
    at = stored_time(now)
    started = experience.started_at or experience.closed_at or at
    experience = replace(experience, started_at=started, updated_at=experience.updated_at or at)
    if experience.outcome:
        return closed(experience, now)
    early = [name for name in ("outcome_result", "confidence_tier", "closed_at") if getattr(experience, name)]
    if early:
        hint = f"outcome: one of {', '.join(OUTCOMES)}"
        raise UsageError(f"an experience without an outcome has no {early[0]}", hint=hint)
    return bounded(experience)


def closed(experience: Experience, now: datetime) -> Experience:
    """With an outcome, checked: what came of it, its tier, its time."""
    if not experience.outcome_result:
        raise UsageError("an outcome needs a result", hint="say what came of it, or why it was given up (--result)")
    tier = experience.confidence_tier or tier_of(experience.outcome, experience.iteration_count)
    return bounded(replace(experience, confidence_tier=tier, closed_at=experience.closed_at or stored_time(now)))


def bounded(experience: Experience) -> Experience:
    size = len(json.dumps(experience.to_dict(), ensure_ascii=False))
    if size > LONGEST_RECORD:
        raise UsageError(f"the experience has {size:,} characters", hint=f"at most {LONGEST_RECORD:,}; shorten it")
    return experience


def digest(fields: Mapping[str, Any]) -> str:
    """The same for the same fields."""
    return hashlib.sha256(json.dumps(fields, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:16]


def id_by_content(fields: Mapping[str, Any]) -> str:
    """Of one that comes without an id: the same each time it comes."""
    return digest({name: value for name, value in fields.items() if name not in _TIMES})[:12]


def _flat(given: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """(field, value), with an outcome that comes as an object taken apart."""
    found: list[tuple[str, Any]] = []
    for name, value in given.items():
        known = _NAMES.get(str(name), str(name))
        if known == "outcome" and isinstance(value, Mapping):
            found += [(_OUTCOME.get(str(part), f"outcome.{part}"), each) for part, each in value.items()]
        else:
            found.append((known, value))
    return found


def _field(name: str, value: Any, choices: Choices) -> Any:
    if name in TEXTS:
        return _text(name, value)
    if name in _TIMES:
        return _time(name, value)
    read: dict[str, Callable[[Any], Any]] = {
        "id": _id,
        "domain": lambda given: choose("domain", given, choices.domains, "more: the setting experience_domains"),
        "strategy": lambda given: choose(
            "strategy", given, choices.strategies, "more: the setting experience_strategies"
        ),
        "outcome": outcome_of,
        "confidence_tier": lambda given: choose("tier", given, TIERS),
        "iteration_count": _count,
    }
    return read[name](value)


def _text(name: str, value: Any) -> str:
    if name in _NESTED and isinstance(value, Mapping):
        between, *parts = _NESTED[name]
        value = between.join(value[part] for part in parts if isinstance(value.get(part), str) and value[part])
    if not isinstance(value, str):
        raise UsageError(f"{name} is a text, not {kind_name(value)}")
    plain = storable(value).strip()
    if len(plain) > LONGEST_TEXT:
        raise UsageError(
            f"{name} has {len(plain):,} characters, and may have {LONGEST_TEXT:,}", hint="say what matters of it"
        )
    return plain


def _time(name: str, value: Any) -> str:
    found = read_time(value) if isinstance(value, str) else None
    if found is None or not 1 < found.year < 9999:
        raise UsageError(f"{name} is no time: {_shown(value)}", hint="write it as 2026-01-31T10:30:00Z")
    return stored_time(found)


def _count(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= MOST_ITERATIONS:
        hint = f"it is a whole number from 1 to {MOST_ITERATIONS:,}"
        raise UsageError(f"iteration_count cannot be {_shown(value)}", hint=hint)
    return value


def _id(value: Any) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        hint = "up to 64 letters, digits and . _ : -, beginning with a letter or digit"
        raise UsageError(f"an experience cannot have the id {_shown(value)}", hint=hint)
    return value


def _listed(names: Sequence[str]) -> str:
    words = [f"{'an' if name[0] in 'aio' else 'a'} {name.replace('_', ' ')}" for name in names]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _shown(value: object) -> str:
    text = repr(value[: _SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
