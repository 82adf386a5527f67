"""Cedar: policies parsed and checked against what ctx tells it, and asked about many things at once.

principal  User::"<name>"   tenant, owner
resource   Item::"<ref>"    ref, kind, path, tags, classification, level (0 to 3), status, module, project, tenant,
                            owner (whether it is the principal's own)
action     Action::"read", "read_redacted", "read_text", "send"
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from research.errors import PolicyError
from research.governance.access import CLASSIFICATIONS, Action, Principal, Resource
from research.governance.policy_files import PolicyText

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
    from research.visible_text import one_line

    return one_line(" ".join(str(error).split()))[:300]
