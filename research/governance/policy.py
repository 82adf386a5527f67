"""MemoryAccessPolicy: who may see what, in Cedar, from files that are the user's own.

Without a policy file the owner of a thing reads it, and nobody else reads anything. With one, Cedar's rule holds for
everybody, the owner included: nothing without a permit, and a forbid wins. Whatever goes wrong (a policy that does not
parse, a file that is gone, an engine that is missing or fails) denies everything and is told as `problem`.

principal  User::"<name>"   tenant, owner
resource   Item::"<ref>"    ref, kind, path, tags, classification, level (0 to 3), status, module, project, tenant,
                            owner (whether it is the principal's own)
action     Action::"read", "read_redacted", "read_text", "send"
"""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from research.errors import PolicyError
from research.files import Identity, identity_of, is_settled
from research.governance.access import (
    CLASSIFICATIONS,
    UNKNOWN,
    Action,
    Effect,
    MemoryAccessDecision,
    Principal,
    Resource,
    Ruling,
    check_place,
    find_policies,
    read_policy,
    unreadable,
)
from research.reports import Check
from research.text import one_line

if TYPE_CHECKING:
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

OWNER_RULE = "owner"
"""What decides where there is no policy file, and the beginning of its revision."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The policies as they were last read. `engine` is Cedar's policy set; None where nobody has written any."""

    revision: str
    paths: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    engine: Any = None
    by_ref: bool = False  # a policy may name single things
    problem: str = ""


class MemoryAccessPolicy:
    """The policies of one user, followed as their files change. May be used by many threads."""

    def __init__(self, setting: str = "", *, config: Path | None = None, index: Path | None = None) -> None:
        """`setting` is that of the name `policy`; `config` stands for the user's config folder; `index` is a folder
        that no policy may lie in."""
        self._setting, self._config, self._index = setting, config, index
        self._lock = threading.Lock()
        self._seen: dict[Path, Identity] | None = None
        self._loaded: Loaded | None = None
        self._in_force = False  # whether there ever were files

    @property
    def revision(self) -> str:
        """Return another text whenever the files say something else, or cannot be used."""
        return self.loaded().revision

    @property
    def problem(self) -> str:
        """Return why everything is denied; empty if it is not."""
        return self.loaded().problem

    @property
    def governs(self) -> bool:
        """Return whether there are policy files; without any the owner reads everything."""
        loaded = self.loaded()
        return loaded.engine is not None or bool(loaded.problem)

    def loaded(self) -> Loaded:
        """Return the policies as the files are now."""
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
        """Decide about the resources, in their order. Never raises for what a policy or its engine does. `reader`: of
        the catalog that knows which places were ingested."""
        loaded = self.loaded()
        rulings: list[Ruling] = []
        problem = loaded.problem
        if not problem:
            try:
                for path in loaded.paths:
                    check_place(path, reader, self._config, self._index)
                rulings = _rulings(loaded, principal, resources, action)
            except PolicyError as error:
                problem = _problem(error)
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
        try:
            seen = {path: identity_of(path.stat()) for path in paths}
        except OSError as error:
            raise unreadable(Path(error.filename), error) from None
        if self._loaded is None or self._loaded.problem or seen != self._seen:
            self._loaded = _load([(path, read_policy(path)) for path in paths])
            self._seen = seen if all(map(is_settled, seen.values())) else None
        return self._loaded

    def _failed(self, error: PolicyError) -> Loaded:
        from research.observe import logger_of

        problem = _problem(error)
        if self._loaded is None or self._loaded.problem != problem:
            logger_of("governance").warning("everything is denied: %s", problem)
        self._in_force, self._seen = True, None
        self._loaded = Loaded(f"none-{_digest(problem)}", problem=problem)
        return self._loaded


def read_policies(
    setting: str, reader: Reader | None = None, index: Path | None = None, *, anywhere: bool = False
) -> tuple[Loaded | None, list[str]]:
    """Read the policies that a setting names, or those of the user's config folder, or None; `anywhere`: wherever they
    lie, and why they would not be used from there. Raises `PolicyError` with what is wrong."""
    texts, notes = [], []
    for path in find_policies(setting):
        try:
            check_place(path, reader, index=index)
            texts.append((path, read_policy(path)))
        except PolicyError as error:
            if not anywhere:
                raise
            try:
                texts.append((path, path.read_text(encoding="utf-8")))
            except (OSError, UnicodeDecodeError):
                raise error from None
            notes.append(error.message)
    return _load(texts) if texts else None, notes


def check_policy(settings: Settings, reader: Reader | None, index: Path) -> list[Check]:
    """Check the policies, for the doctor. Nothing is said where there is none."""
    try:
        loaded, _ = read_policies(settings.policy, reader, index)
    except PolicyError as error:
        return [Check("policy", "error", f"everything is denied: {error.message}", error.hint)]
    if loaded is None:
        return []
    files = ", ".join(str(path) for path in loaded.paths)
    return [Check("policy", "ok", f"{len(loaded.names)} policies in {files}")]


def _load(texts: Sequence[tuple[Path, str]]) -> Loaded:
    """Parse policies and check them against the schema: a misspelt attribute or action is an error now, and no surprise
    later. Raises `PolicyError` that names file and policy."""
    cedar = _cedar()
    schema = cedar.Schema.from_str(SCHEMA)
    named: dict[str, Any] = {}
    for path, text in texts:
        try:
            checked = cedar.validate_policies(text, schema)
            parsed = json.loads(cedar.policies_to_json_str(text)) if checked.validation_passed else {}
        except ValueError as error:
            raise PolicyError(f"{path} does not parse: {_line(error)}", hint=_CHECK) from None
        if not checked.validation_passed:
            raise _invalid(path, checked.errors[0])
        if parsed.get("templates"):
            raise PolicyError(f"{path} has a policy with ?principal or ?resource, which decides nothing", hint=_CHECK)
        for number, policy in enumerate(parsed["staticPolicies"].values(), start=1):
            place = f"{path.name}#{number}"
            name = str((policy.get("annotations") or {}).get("id") or place)
            named[name if name not in named else f"{name} ({place})"] = policy
    try:
        engine = cedar.PolicySet.from_json_str(
            json.dumps({"staticPolicies": named, "templates": {}, "templateLinks": []})
        )
    except ValueError as error:
        raise PolicyError(f"the policies cannot be used together: {_line(error)}", hint=_CHECK) from None
    revision = f"cedar-{_digest(json.dumps([(str(path), text) for path, text in texts]))}"
    parsed = json.dumps(list(named.values()))
    by_ref = '"ref"' in parsed or '"Item"' in parsed  # as Cedar itself has read them, however they are written
    return Loaded(revision, tuple(path for path, _ in texts), tuple(named), engine, by_ref)


def _invalid(path: Path, error: Any) -> PolicyError:
    """Cedar counts policies from 0 and calls them policy0, wherever they stand."""
    number = str(error.policy_id).removeprefix("policy")
    which = f", policy {int(number) + 1}" if number.isdecimal() else " does not parse"
    why = _line(error.error).removeprefix(f"for policy `{error.policy_id}`, ").removeprefix("Policy parse error: ")
    return PolicyError(f"{path}{which}: {why}", hint=_CHECK)


class _Answer(NamedTuple):
    """What the engine says of one thing. `error`: a policy could not be evaluated for it, which is a denial."""

    allowed: bool = False
    policies: tuple[str, ...] = ()
    error: bool = False


def _cedar_of(
    policies: Any, principal: Principal, resources: Sequence[Resource]
) -> Callable[[Action, Sequence[str]], dict[str, _Answer]]:
    """Return Cedar with the things of one decision, to be asked about their refs. Ids and attributes are handed over as
    JSON, so that nothing in a ref can read like a policy."""
    who = {"type": "User", "id": principal.name}
    entities = [
        {"uid": who, "attrs": {"tenant": principal.tenant, "owner": principal.owner}, "parents": []},
        *({"uid": _uid(each.ref), "attrs": _attributes(principal, each), "parents": []} for each in resources),
    ]
    with _engine_errors():
        things = _cedar().Entities.from_json_str(json.dumps(entities))

    def ask(action: Action, refs: Sequence[str]) -> dict[str, _Answer]:
        kind = {"type": "Action", "id": action}
        requests = [{"principal": who, "action": kind, "resource": _uid(ref)} for ref in refs]
        with _engine_errors():
            results = _cedar().is_authorized_batch(requests, policies, things) if refs else []
            answers = [
                _Answer(
                    result.allowed and not result.diagnostics.errors,
                    tuple(sorted(result.diagnostics.reasons)),
                    bool(result.diagnostics.errors),
                )
                for result in results
            ]
            return dict(zip(refs, answers, strict=True))

    return ask


@contextmanager
def _engine_errors() -> Iterator[None]:
    """Whatever the engine does, nothing is released. Without its words: they may quote what it was given."""
    try:
        yield
    except PolicyError:
        raise
    except Exception as error:  # noqa: BLE001
        raise PolicyError(f"the policy engine failed: {type(error).__name__}", hint=_CHECK) from None


def _rulings(loaded: Loaded, principal: Principal, resources: Sequence[Resource], action: Action) -> list[Ruling]:
    known = {each.ref: each for each in resources if each.kind != UNKNOWN}
    if loaded.engine is None:
        own = {ref for ref, each in known.items() if _is_own(principal, each)}
        return [Ruling(each, "allow" if each.ref in own else "deny", (OWNER_RULE,)) for each in resources]
    # Things that are alike to the policies are decided about once, in the name of the first of them: a thing's name
    # counts only where a policy speaks of names.
    alike: dict[Hashable, str] = {}
    first = {
        ref: alike.setdefault(each if loaded.by_ref else replace(each, ref=""), ref) for ref, each in known.items()
    }
    ask = _cedar_of(loaded.engine, principal, [known[ref] for ref in alike.values()])
    whole = ask(action, list(alike.values()))
    redacted: dict[str, _Answer] = {}
    texts: dict[str, _Answer] = {}
    if action == "read":
        left = [ref for ref, each in whole.items() if not (each.allowed or each.error)]
        redacted = ask("read_redacted", left)
        texts = ask("read_text", [ref for ref, each in redacted.items() if each.allowed])
    rulings = []
    for each in resources:
        effect: Effect = "deny"
        ref = first.get(each.ref, "")
        answer, masked = whole.get(ref, _Answer()), redacted.get(ref, _Answer())
        policies = answer.policies
        if answer.allowed:
            effect = "allow"
        elif masked.allowed:
            effect, policies = "redact", masked.policies
        else:
            policies = tuple(dict.fromkeys((*policies, *masked.policies)))
        rulings.append(Ruling(each, effect, policies, ref in texts and texts[ref].allowed))
    return rulings


def _is_own(principal: Principal, resource: Resource) -> bool:
    """Return whether a thing is the principal's own. What has no tenant is the owner's."""
    return resource.tenant == principal.tenant if resource.tenant else principal.owner


def _uid(ref: str) -> dict[str, str]:
    return {"type": "Item", "id": ref}


def _attributes(principal: Principal, resource: Resource) -> dict[str, Any]:
    facts = {each.name: getattr(resource, each.name) for each in fields(resource)}
    level = CLASSIFICATIONS.index(resource.classification)
    return {**facts, "tags": sorted(resource.tags), "level": level, "owner": _is_own(principal, resource)}


def _cedar() -> Any:
    try:
        import cedarpy
    except ImportError:
        raise PolicyError(
            "there is a policy, and the engine that decides by it is not installed", hint=INSTALL
        ) from None
    return cedarpy


def _problem(error: PolicyError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _line(error: object) -> str:
    return one_line(" ".join(str(error).split()))[:300]
