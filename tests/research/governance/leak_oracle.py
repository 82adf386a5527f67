"""What a principal may see, worked out by the test: labels, owners and Cedar itself, with nothing of ours between."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import cedarpy

from research.governance.access import Principal
from tests.research.governance.canaries import Corpus, Thing

LEVELS = ("Public", "Internal", "Confidential", "Restricted")


@dataclass(frozen=True, slots=True)
class Given:
    """Labels as they are given: target, classification, module. A target is a lasting ref, `path:` or `tag:`."""

    target: str
    classification: str = ""
    module: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """A policy with what it decides by. Without a text there is none. `broken`: it cannot be used at all."""

    policy: str | None
    broken: bool = False
    labels: tuple[Given, ...] = field(default=())
    default: str = "Internal"


def forbidden(corpus: Corpus, rules: Rules, principal: Principal) -> frozenset[str]:
    """Every canary and secret that must not reach this principal: it stands in nothing that they may see."""
    known = [each for each in corpus.things.values() if each.kind != "memory" or each.tenant == principal.tenant]
    seen: set[str] = set()
    if rules.policy is None:
        for each in known:
            if principal.owner or (each.kind == "memory" and each.tenant == principal.tenant != ""):
                seen |= each.names | each.texts | each.secrets
    elif not rules.broken:
        for each, (read, redacted, text) in zip(known, _asked(known, rules, principal), strict=True):
            if read is True:
                seen |= each.names | each.texts | each.secrets
            elif read is False and redacted is True:
                seen |= each.names | (each.texts if text is True or each.maskable else frozenset())
    return corpus.everything - seen


def _asked(things: Sequence[Thing], rules: Rules, principal: Principal) -> list[tuple[bool | None, ...]]:
    """For each: whether it may be read, read redacted, and its text be read; None where a policy fails on it."""
    user = {"type": "User", "id": principal.name}
    entities = [{"uid": user, "attrs": {"tenant": principal.tenant, "owner": principal.owner}, "parents": []}]
    for each in things:
        uid = {"type": "Item", "id": each.ref}
        entities.append({"uid": uid, "attrs": _attributes(each, rules, principal), "parents": []})
    actions = ("read", "read_redacted", "read_text")
    requests = [
        {"principal": user, "action": {"type": "Action", "id": action}, "resource": {"type": "Item", "id": each.ref}}
        for each in things
        for action in actions
    ]
    results = cedarpy.is_authorized_batch(requests, rules.policy, entities)  # type: ignore[arg-type]
    told = [None if each.diagnostics.errors else bool(each.allowed) for each in results]
    return [tuple(told[at : at + 3]) for at in range(0, len(told), 3)]


def _attributes(thing: Thing, rules: Rules, principal: Principal) -> dict[str, Any]:
    fitting = [each for each in rules.labels if _fits(thing, each)]
    level = max((LEVELS.index(each.classification) for each in fitting if each.classification), default=-1)
    level = level if level >= 0 else LEVELS.index(rules.default)
    return {
        "ref": thing.ref,
        "kind": thing.kind,
        "path": thing.paths[0] if thing.paths else "",
        "tags": sorted(thing.tags),
        "classification": LEVELS[level],
        "level": level,
        "status": "",
        "module": _module(thing, fitting),
        "project": "",
        "tenant": thing.tenant,
        "owner": thing.tenant == principal.tenant if thing.tenant else principal.owner,
    }


def _fits(thing: Thing, given: Given) -> bool:
    kind, _, rest = given.target.partition(":")
    if kind == "tag":
        return rest in thing.tags
    if kind == "path":
        any_text = ".*".join(map(re.escape, rest.split("*")))
        pattern = re.compile(f"(?:.*/)?{any_text}(?:/.*)?", re.S)
        return any(pattern.fullmatch(path) for path in thing.paths)
    return given.target in thing.targets and given.tenant == thing.tenant


def _module(thing: Thing, fitting: Iterable[Given]) -> str:
    """That of the most specific target: the thing, what it is a part of."""
    named = {each.target: each.module for each in fitting if each.module}
    return next((named[target] for target in thing.targets if target in named), "")
