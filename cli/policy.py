"""ctx policy: who may see what; checked, tried, and an example to begin with."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.call import Call, Verbs, offers
from cli.options import RefsArgument, TenantOption
from cli.output import say, write, write_document
from research.errors import UsageError

if TYPE_CHECKING:
    from research.governance import MemoryAccessDecision, Resource


def check(
    call: Call,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="Policies that are not in force yet.", show_default=False)
    ] = None,
) -> int:
    """Say whether the policies in force can be used, or those of FILE.

    Examples:
      ctx policy check
      ctx policy check policy.cedar
    """
    from research.governance import read_policies

    index = call.index()
    with index.unrestricted().catalog.snapshot() if index.exists else nullcontext() as reader:
        setting = index.settings.policy if file is None else file
        loaded, notes = read_policies(setting, reader, index.root, anywhere=file is not None)
    names = loaded.names if loaded is not None else ()
    paths = [str(path) for path in loaded.paths] if loaded is not None else []
    fields = {"files": paths, "policies": list(names), "revision": loaded.revision if loaded is not None else None}
    call.show("ctx.policy/1", fields, ((name,) for name in names))
    if call.as_json:
        return 0
    if loaded is None:
        from research.files import user_config

        call.note(f"there is no policy; one begins with: ctx policy example > {user_config().parent}/policy.cedar")
    else:
        for note in notes:
            call.note(f"it would not be used from there: {note}")
        call.say(f"{len(names)} policies in {', '.join(paths)} are well written")
    return 0


def example(call: Call) -> int:
    """Print a policy to begin with.

    Examples:
      ctx policy example > policy.cedar
    """
    from importlib.resources import files

    text = files("research.governance").joinpath("example.cedar").read_text(encoding="utf-8")
    if call.as_json:
        write_document("ctx.policy/1", {"example": text})
    else:
        write(text)
    return 0


@offers(acting=True)
def try_policy(
    call: Call,
    refs: RefsArgument = None,
    *,
    tenant: TenantOption = "",
    send: Annotated[bool, typer.Option("--send", help="To be sent to a model elsewhere, in place of read.")] = False,
) -> int:
    """Say what the policies decide about REFs, for you or for --as NAME, and by which policies. Nothing is released.

    Examples:
      ctx policy try page:3f9a12cc5e6b7a80#7 code:/src/dates.py
      ctx policy try --as ann@lab --send memory:1b2c
    """
    from dataclasses import replace

    from research.governance import Principal, owner_principal

    if not refs:
        raise UsageError("try needs the refs of things", hint="ctx policy try page:ID#7; ctx search prints some")
    index = replace(call, acting=None).index()
    who = call.acting or Principal(owner_principal().name, tenant, owner=True)
    if call.acting and tenant:
        who = Principal(who.name, tenant)
    decision = index.policy.decide(who, refs, action="send" if send else "read")
    lines = (
        (
            "redact, with text" if each.effect == "redact" and each.text else each.effect,
            each.ref,
            each.resource.classification,
            ", ".join(each.policies),
        )
        for each in decision.rulings
    )
    call.show("ctx.policy/1", {"decision": _document(decision)}, lines)
    if decision.problem:
        say(f"ctx: everything is denied: {decision.problem}")
    return 1 if decision.problem else 0


def _document(decision: MemoryAccessDecision) -> dict[str, object]:
    return {
        "principal": decision.principal.name,
        "tenant": decision.principal.tenant,
        "owner": decision.principal.owner,
        "action": decision.action,
        "revision": decision.policy,
        "problem": decision.problem or None,
        "rulings": [
            {
                "ref": each.ref,
                "effect": each.effect,
                "text": each.text,
                "policies": list(each.policies),
                **resource_fields(each.resource),
            }
            for each in decision.rulings
        ],
    }


def resource_fields(thing: Resource) -> dict[str, Any]:
    """What a policy knows of a thing."""
    return {
        "kind": thing.kind,
        "source_path": thing.path or None,
        "tags": sorted(thing.tags),
        "classification": thing.classification,
        **{name: getattr(thing, name) or None for name in ("status", "module", "project")},
    }


POLICY = Verbs(
    """Policies are written in Cedar (www.cedarpolicy.com). They are policy.cedar and policies/*.cedar beside your
    config.toml, or what the setting `policy` (CTX_POLICY) names, a file or a folder; never a file that lies where
    documents were ingested, or that others may write. Without any, what is yours is yours to read and nobody else reads
    anything. With one, nothing is read that no policy permits, by anybody; and if it cannot be used, nothing is.
    In a pipe the fields of a line are separated by tabs.""",
    {"check": check, "example": example, "try": try_policy},
)
