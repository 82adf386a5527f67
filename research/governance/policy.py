"""MemoryAccessPolicy: who may see what, in Cedar, from files that are the user's own.

Without a policy file the owner of a thing reads it, and nobody else reads anything. With one, Cedar's rule holds for
everybody, the owner included: nothing without a permit, and a forbid wins. Whatever goes wrong (a policy that does not
parse, a file that is gone, an engine that is missing or fails) denies everything and is told as `problem`.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from research.errors import PolicyError
from research.governance.access import Action, Effect, MemoryAccessDecision, Principal, Resource, Ruling
from research.governance.cedar import Answer, CedarRequest, Loaded, digest, is_own, load_policies
from research.governance.policy_files import Identity, check_place, find_policies, identities, read_policy

if TYPE_CHECKING:
    from research.store.catalog.reader import Reader

OWNER_RULE = "owner"
"""What decides where there is no policy file, and the beginning of its revision."""

UNKNOWN = "unknown"
"""The kind of a resource that there is not; no policy is asked about it."""

# A file that changes twice within a tick of the file system's clock looks the same; some clocks tick every two seconds.
_TICK_NS = 2_000_000_000


class MemoryAccessPolicy:
    """The policies of one user, followed as their files change. May be used by many threads."""

    def __init__(self, setting: str = "", *, config: Path | None = None, index: Path | None = None) -> None:
        """`setting` is that of the name `policy`; `config` stands for the user's config folder; `index` is a folder
        that no policy may lie in."""
        self._setting, self._config, self._index = setting, config, index
        self._lock = threading.Lock()
        self._seen: tuple[Identity, ...] | None = None
        self._loaded: Loaded | None = None
        self._in_force = False  # whether there ever were files

    @property
    def revision(self) -> str:
        """Another one whenever the files say something else, or cannot be used."""
        return self.loaded().revision

    @property
    def problem(self) -> str:
        """Why everything is denied; empty if it is not."""
        return self.loaded().problem

    @property
    def governs(self) -> bool:
        """Whether there are policy files; without any the owner reads everything."""
        loaded = self.loaded()
        return loaded.engine is not None or bool(loaded.problem)

    def loaded(self) -> Loaded:
        """As the files are now."""
        with self._lock:
            try:
                return self._follow()
            except PolicyError as error:
                return self._failed(error)

    def decide(
        self,
        principal: Principal,
        resources: Sequence[Resource],
        action: Action = "read",
        *,
        reader: Reader | None = None,
    ) -> MemoryAccessDecision:
        """One decision for the set, in its order. Never raises for what a policy or its engine does. `reader`: of the
        catalog that knows which places were ingested."""
        loaded = self.loaded()
        rulings: list[Ruling] = []
        problem = loaded.problem
        if not problem:
            try:
                for path in loaded.paths:
                    check_place(path, reader, self._config, self._index)
                rulings = _rulings(loaded, principal, resources, action)
            except PolicyError as error:
                problem = _told(error)
        if problem:
            rulings = [Ruling(resource, "deny") for resource in resources]
        return MemoryAccessDecision(
            id=f"decision-{uuid.uuid4().hex}",
            principal=principal,
            action=action,
            rulings=tuple(rulings),
            policy=loaded.revision,
            decided_at=datetime.now(UTC).isoformat(),
            problem=problem,
            policies=tuple(sorted({name for ruling in rulings for name in ruling.policies})),
        )

    def _follow(self) -> Loaded:
        paths = find_policies(self._setting, self._config)
        if not paths:
            # Files that were in force and are gone are no permission: an editor may be about to write them anew.
            if self._in_force:
                raise PolicyError(
                    "the policy files that were in force are gone", hint="put them back, or start anew without a policy"
                )
            self._loaded = Loaded(OWNER_RULE)
            return self._loaded
        self._in_force = True
        seen = identities(paths)
        if self._loaded is None or self._loaded.problem or seen != self._seen:
            texts = [read_policy(path) for path in paths]
            self._loaded = load_policies(texts)
            unsure = time.time_ns() - max(each[4] for each in seen) < _TICK_NS
            self._seen = None if unsure else seen
        return self._loaded

    def _failed(self, error: PolicyError) -> Loaded:
        from research.observe import logger_of

        problem = _told(error)
        if self._loaded is None or self._loaded.problem != problem:
            logger_of("governance").warning("everything is denied: %s", problem)
        self._in_force, self._seen = True, None
        self._loaded = Loaded(f"none-{digest(problem)}", problem=problem)
        return self._loaded


def _rulings(loaded: Loaded, principal: Principal, resources: Sequence[Resource], action: Action) -> list[Ruling]:
    known = {each.ref: each for each in resources if each.kind != UNKNOWN}
    if loaded.engine is None:
        own = {ref for ref, each in known.items() if is_own(principal, each)}
        return [Ruling(each, "allow" if each.ref in own else "deny", (OWNER_RULE,)) for each in resources]
    # Things that are alike to the policies are decided about once, in the name of the first of them.
    alike: dict[Hashable, str] = {}
    first = {ref: alike.setdefault(_facts(each, by_ref=loaded.by_ref), ref) for ref, each in known.items()}
    asked = CedarRequest(loaded.engine, principal, [known[ref] for ref in alike.values()])
    whole = asked.answers(action, list(alike.values()))
    redacted: dict[str, Answer] = {}
    texts: dict[str, Answer] = {}
    if action == "read":
        left = [ref for ref, each in whole.items() if not (each.allowed or each.error)]
        redacted = asked.answers("read_redacted", left)
        texts = asked.answers("read_text", [ref for ref, each in redacted.items() if each.allowed])
    rulings = []
    for each in resources:
        effect: Effect = "deny"
        ref, text = first.get(each.ref, ""), False
        answer = whole.get(ref, Answer(False, ()))
        if answer.allowed:
            effect = "allow"
        elif ref in redacted:
            if redacted[ref].allowed:
                effect, answer, text = "redact", redacted[ref], texts[ref].allowed
            else:
                both = (*answer.policies, *redacted[ref].policies)
                answer = Answer(False, tuple(dict.fromkeys(both)))
        rulings.append(Ruling(each, effect, answer.policies, text))
    return rulings


def _facts(resource: Resource, *, by_ref: bool) -> Hashable:
    """All that a policy is told of a thing; with its name only where a policy speaks of names."""
    return resource if by_ref else replace(resource, ref="")


def _told(error: PolicyError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message
