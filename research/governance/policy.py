"""MemoryAccessPolicy: who may see what, in Cedar, from files that are the user's own.

Without a policy file the owner of a thing reads it, and nobody else reads anything. With one, Cedar's rule holds for
everybody, the owner included: nothing without a permit, and a forbid wins. Whatever goes wrong (a policy that does not
parse, a file that is gone, an engine that is missing or fails) denies everything and is told as `problem`.

Whether the policy can be used, for `ctx doctor` and `ctx policy check`.

Cedar: policies parsed and checked against what ctx tells it, and asked about many things at once.

principal  User::"<name>"   tenant, owner
resource   Item::"<ref>"    ref, kind, path, tags, classification, level (0 to 3), status, module, project, tenant,
                            owner (whether it is the principal's own)
action     Action::"read", "read_redacted", "read_text", "send"
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
import uuid
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from research.errors import PolicyError
from research.governance.access import (
    CLASSIFICATIONS,
    Action,
    Effect,
    MemoryAccessDecision,
    Principal,
    Resource,
    Ruling,
)
from research.governance.policy_files import Identity, PolicyText, check_place, find_policies, identities, read_policy
from research.reports import Check

if TYPE_CHECKING:
    from pathlib import Path

    from research.settings import Settings
    from research.store import Reader

INSTALL = "pip install 'ctx-research[govern]'"
_CHECK = "see: ctx policy check"

SCHEMA = """
entity User = { tenant: String, owner: Bool };
entity Item = {
  ref: String, kind: String, path: String, tags: Set<String>, classification: String, level: Long, status: String,
  module: String, project: String, tenant: String, owner: Bool
};
action "read", "read_redacted", "read_text", "send" appliesTo { principal: User, resource: Item };
"""


class Answer(NamedTuple):
    """What the engine says of one thing. `error`: a policy could not be evaluated for it, which is a denial."""

    allowed: bool
    policies: tuple[str, ...]
    error: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """The policies as they were last read. `engine` is Cedar's policy set; None where nobody has written any."""

    revision: str
    paths: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    engine: Any = None
    by_ref: bool = False  # a policy may name single things
    problem: str = ""


def is_own(principal: Principal, resource: Resource) -> bool:
    """Whether a thing is the principal's own. What has no tenant is the owner's."""
    return resource.tenant == principal.tenant if resource.tenant else principal.owner


def load_policies(texts: Sequence[PolicyText]) -> Loaded:
    """Parsed and checked against the schema: a misspelt attribute or action is an error now, and no surprise later.
    Raises `PolicyError` that names file and policy."""
    cedar = _cedar()
    schema = cedar.Schema.from_str(SCHEMA)
    named: dict[str, Any] = {}
    for each in texts:
        try:
            checked = cedar.validate_policies(each.text, schema)
            parsed = json.loads(cedar.policies_to_json_str(each.text)) if checked.validation_passed else {}
        except ValueError as error:
            raise PolicyError(f"{each.path} does not parse: {_line(error)}", hint=_CHECK) from None
        if not checked.validation_passed:
            raise _invalid(each, checked.errors[0])
        if parsed.get("templates"):
            raise PolicyError(
                f"{each.path} has a policy with ?principal or ?resource, which decides nothing", hint=_CHECK
            )
        for number, policy in enumerate(parsed["staticPolicies"].values(), start=1):
            place = f"{each.name}#{number}"
            name = str((policy.get("annotations") or {}).get("id") or place)
            named[name if name not in named else f"{name} ({place})"] = policy
    try:
        engine = cedar.PolicySet.from_json_str(
            json.dumps({"staticPolicies": named, "templates": {}, "templateLinks": []})
        )
    except ValueError as error:
        raise PolicyError(f"the policies cannot be used together: {_line(error)}", hint=_CHECK) from None
    told = json.dumps([(str(each.path), each.text) for each in texts])
    parsed = json.dumps(list(named.values()))
    by_ref = '"ref"' in parsed or '"Item"' in parsed  # as Cedar itself has read them, however they are written
    return Loaded(f"cedar-{digest(told)}", tuple(each.path for each in texts), tuple(named), engine, by_ref)


def _invalid(text: PolicyText, error: Any) -> PolicyError:
    """Cedar counts policies from 0 and calls them policy0, wherever they stand."""
    number = str(error.policy_id).removeprefix("policy")
    which = f", policy {int(number) + 1}" if number.isdecimal() else " does not parse"
    why = _line(error.error).removeprefix(f"for policy `{error.policy_id}`, ").removeprefix("Policy parse error: ")
    return PolicyError(f"{text.path}{which}: {why}", hint=_CHECK)


class CedarRequest:
    """Cedar with the things of one decision. Ids and attributes are handed over as JSON, so that nothing in a ref can
    read like a policy."""

    def __init__(self, policies: Any, principal: Principal, resources: Sequence[Resource]) -> None:
        self._policies = policies
        self._principal = {"type": "User", "id": principal.name}
        attributes = {"tenant": principal.tenant, "owner": principal.owner}
        entities = [
            {"uid": self._principal, "attrs": attributes, "parents": []},
            *({"uid": _uid(each.ref), "attrs": _attributes(principal, each), "parents": []} for each in resources),
        ]
        try:
            self._entities = _cedar().Entities.from_json_str(json.dumps(entities))
        except Exception as error:  # noqa: BLE001  whatever the engine does, nothing is released
            raise _broken(error) from None

    def answers(self, action: Action, refs: Sequence[str]) -> dict[str, Answer]:
        if not refs:
            return {}
        kind = {"type": "Action", "id": action}
        requests = [{"principal": self._principal, "action": kind, "resource": _uid(ref)} for ref in refs]
        try:
            results = _cedar().is_authorized_batch(requests, self._policies, self._entities)
            found = [
                Answer(
                    result.allowed and not result.diagnostics.errors,
                    tuple(sorted(result.diagnostics.reasons)),
                    bool(result.diagnostics.errors),
                )
                for result in results
            ]
        except Exception as error:  # noqa: BLE001
            raise _broken(error) from None
        if len(found) != len(refs):
            raise PolicyError("the policy engine gave another number of answers than it was asked for")
        return dict(zip(refs, found, strict=True))


def _uid(ref: str) -> dict[str, str]:
    return {"type": "Item", "id": ref}


def _attributes(principal: Principal, resource: Resource) -> dict[str, Any]:
    return {
        "ref": resource.ref,
        "kind": resource.kind,
        "path": resource.path,
        "tags": sorted(resource.tags),
        "classification": resource.classification,
        "level": CLASSIFICATIONS.index(resource.classification),
        "status": resource.status,
        "module": resource.module,
        "project": resource.project,
        "tenant": resource.tenant,
        "owner": is_own(principal, resource),
    }


def _cedar() -> Any:
    try:
        import cedarpy
    except ImportError:
        raise PolicyError(
            "there is a policy, and the engine that decides by it is not installed", hint=INSTALL
        ) from None
    return cedarpy


def _broken(error: Exception) -> PolicyError:
    """Without its words: they may quote what it was given."""
    return PolicyError(f"the policy engine failed: {type(error).__name__}", hint=_CHECK)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _line(error: object) -> str:
    from research.text import one_line

    return one_line(" ".join(str(error).split()))[:300]


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


def read_policies(setting: str, reader: Reader | None = None, index: Path | None = None) -> Loaded | None:
    """The policies that a setting names, or those of the user's config folder; None: there are none. Raises
    `PolicyError` with what is wrong."""
    paths = find_policies(setting)
    for path in paths:
        check_place(path, reader, index=index)
    return load_policies([read_policy(path) for path in paths]) if paths else None


def check_file(name: str, reader: Reader | None, index: Path) -> tuple[Loaded, list[str]]:
    """The policies of a file or folder, wherever it lies; and why they would not be used from there. Raises
    `PolicyError` where they are not well written."""
    texts, notes = [], []
    for path in find_policies(name):
        try:
            check_place(path, reader, index=index)
            texts.append(read_policy(path))
        except PolicyError as error:
            notes.append(error.message)
            texts.append(PolicyText(path, path.name, _text(path, error)))
    return load_policies(texts), notes


def _text(path: Path, refused: PolicyError) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise refused from None


def check_policy(settings: Settings, reader: Reader | None, index: Path) -> list[Check]:
    """Nothing is told where there is no policy."""
    try:
        loaded = read_policies(settings.policy, reader, index)
    except PolicyError as error:
        return [Check("policy", "error", f"everything is denied: {error.message}", error.hint)]
    if loaded is None:
        return []
    files = ", ".join(str(path) for path in loaded.paths)
    return [Check("policy", "ok", f"{len(loaded.names)} policies in {files}")]
