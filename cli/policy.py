"""ctx policy: who may see what; checked, tried, and an example to begin with."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, index_for
from research.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.options import Common
    from research.governance import MemoryAccessDecision

DETAILS = """
Policies are written in Cedar (www.cedarpolicy.com). They are policy.cedar and policies/*.cedar beside your config.toml,
or what the setting `policy` (CTX_POLICY) names, a file or a folder; never a file that lies where documents were
ingested, or that others may write. Without any, what is yours is yours to read and nobody else reads anything. With
one, nothing is read that no policy permits, by anybody; and if it cannot be used, nothing is. `check` reads them, or
FILE; `try` tells what they decide about REFs, for you or for --as NAME, and by which policies; nothing is given out.
In a pipe the fields of a line are separated by tabs.
"""

EPILOG = """
\b
Examples:
  ctx policy example > policy.cedar
  ctx policy check policy.cedar
  ctx policy check
  ctx policy try page:3f9a12cc5e6b7a80#7 code:/src/dates.py
  ctx policy try --as ann --tenant lab --action send memory:1b2c
"""


class Verb(StrEnum):
    check = "check"
    example = "example"
    try_ = "try"


class Wanted(StrEnum):
    read = "read"
    send = "send"


def command(
    ctx: typer.Context,
    *,
    verb: Annotated[Verb, typer.Argument(metavar="check|example|try", help="What to do. Default: check.")] = Verb.check,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE|REF...", help="What to check, or to decide about.", show_default=False),
    ] = None,
    name: Annotated[str | None, typer.Option("--as", metavar="NAME", help="try: for whom. Default: you.")] = None,
    tenant: Annotated[str, typer.Option("--tenant", metavar="T", help="try: whose things they see.")] = "",
    action: Annotated[
        Wanted, typer.Option("--action", help="try: to read, or to send to a model elsewhere.")
    ] = Wanted.read,
) -> int:
    given = common(ctx)
    if verb is not Verb.try_ and (name is not None or tenant or action is not Wanted.read):
        raise UsageError("--as, --tenant and --action belong to try", hint="ctx policy try --as NAME REF...")
    if verb is Verb.try_:
        return _try(words or (), name, tenant, action, given)
    if verb is Verb.example:
        _example(given)
    else:
        _check(words or (), given)
    return 0


def _check(files: Sequence[str], given: Common) -> None:
    from contextlib import nullcontext

    from cli.output import say, write_document, write_line
    from research.governance import read_policies

    if len(files) > 1:
        raise UsageError("check takes one file or folder", hint="ctx policy check FILE")
    index = index_for(given)
    with index.unrestricted().catalog.snapshot() if index.exists else nullcontext() as reader:
        setting = files[0] if files else index.settings.policy
        loaded, notes = read_policies(setting, reader, index.root, anywhere=bool(files))
    names = loaded.names if loaded is not None else ()
    if given.as_json:
        paths = [str(path) for path in loaded.paths] if loaded is not None else []
        revision = loaded.revision if loaded is not None else None
        write_document("ctx.policy/1", {"files": paths, "policies": list(names), "revision": revision})
        return
    for name in names:
        write_line(name)
    if given.quiet:
        return
    if loaded is None:
        from research.files import user_config

        say(f"ctx: note: there is no policy; one begins with: ctx policy example > {user_config().parent}/policy.cedar")
    else:
        for note in notes:
            say(f"ctx: note: it would not be used from there: {note}")
        say(f"ctx: {len(names)} policies in {', '.join(str(path) for path in loaded.paths)} are well written")


def _example(given: Common) -> None:
    from importlib.resources import files

    from cli.output import write, write_document

    text = files("research.governance").joinpath("example.cedar").read_text(encoding="utf-8")
    if given.as_json:
        write_document("ctx.policy/1", {"example": text})
    else:
        write(text)


def _try(refs: Sequence[str], name: str | None, tenant: str, action: Wanted, given: Common) -> int:
    from cli.output import say, write_document, write_line
    from research.governance import Principal, owner_principal

    if not refs:
        raise UsageError("try needs the refs of things", hint="ctx policy try page:ID#7; ctx search prints some")
    index = index_for(given)
    if name is None:
        who = owner_principal()
        who = Principal(who.name, tenant, owner=True)
    else:
        who = Principal(name, tenant)
    decision = index.policy.decide(who, refs, action="send" if action is Wanted.send else "read")
    if given.as_json:
        write_document("ctx.policy/1", {"decision": _document(decision)})
    else:
        for ruling in decision.rulings:
            effect = "redact, with text" if ruling.effect == "redact" and ruling.text else ruling.effect
            write_line(effect, ruling.ref, ruling.resource.classification, ", ".join(ruling.policies))
    if decision.problem:
        say(f"ctx: everything is denied: {decision.problem}")
    return 1 if decision.problem else 0


def _document(decision: MemoryAccessDecision) -> dict[str, object]:
    from cli.views import resource_fields

    return {
        "principal": decision.principal.name,
        "tenant": decision.principal.tenant,
        "owner": decision.principal.owner,
        "action": decision.action,
        "revision": decision.policy,
        "problem": decision.problem or None,
        "rulings": [
            {
                "ref": ruling.ref,
                "effect": ruling.effect,
                "text": ruling.text,
                "policies": list(ruling.policies),
                **resource_fields(ruling.resource),
            }
            for ruling in decision.rulings
        ],
    }
