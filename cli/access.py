"""ctx policy, label and audit: who may see what, how confidential things are, and who was shown what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.call import Call, Verbs, offers
from cli.options import LimitOption, PrincipalOption, RefsArgument, TargetArgument, TenantOption
from cli.output import say, write, write_document
from research.errors import NothingFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from research.governance import Label, Labels, MemoryAccessAudit, MemoryAccessDecision, Resource, Verification


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


NAMES = ("classification", "status", "module", "project")


def list_labels(call: Call) -> int:
    """List all labels: what, target, file.

    Examples:
      ctx label
      ctx label list --json | jq -r '.labels[].target'
    """
    labels = call.index().policy.labels()
    return _show(call, labels, labels.listed())


def set_labels(
    call: Call,
    target: TargetArgument,
    *,
    level: Annotated[
        str | None, typer.Option("--level", metavar="LEVEL", help="Public, Internal, Confidential or Restricted.")
    ] = None,
    status: Annotated[str | None, typer.Option("--status", metavar="WORD", help="Such as draft or final.")] = None,
    module: Annotated[str | None, typer.Option("--module", metavar="WORD", help="Part of what it is.")] = None,
    project: Annotated[str | None, typer.Option("--project", metavar="WORD", help="What it belongs to.")] = None,
    tenant: TenantOption = "",
) -> int:
    """Give TARGET a level, a status, a module, a project.

    Examples:
      ctx label set salaries.pdf --level Restricted
      ctx label set 'path:hr/*' --level Confidential
      ctx label set tag:press --level Public
      ctx label set report.pdf --status final --project apollo
    """
    given = dict(zip(NAMES, (level, status, module, project), strict=True))
    values = {name: value for name, value in given.items() if value is not None}
    if not values:
        raise UsageError("there is nothing to set", hint="ctx label set TARGET --level LEVEL, --status WORD, …")
    labels = call.index().policy.labels()
    return _show(call, labels, labels.put(target, values, tenant=tenant))


def show_labels(call: Call, target: TargetArgument, *, tenant: TenantOption = "") -> int:
    """Print what holds for TARGET, by labels of its own and others that mean it.

    Examples:
      ctx label show salaries.pdf
    """

    labels = _labels(call)
    if target.startswith(("path:", "tag:")):  # no thing: it has its own labels alone
        return _show(call, labels, labels.listed(target, tenant=tenant))
    files = labels.names()
    found = labels.holding(target, default=call.settings().default_classification, tenant=tenant)
    things = [
        {"ref": each.ref, "filename": _filename(each.ref, files) or None, **resource_fields(each)} for each in found
    ]
    lines = (
        (
            each.classification,
            each.ref,
            _filename(each.ref, files),
            *(f"{name}={value}" for name in NAMES[1:] if (value := getattr(each, name))),
        )
        for each in found
    )
    call.show("ctx.label/1", {"things": things}, lines)
    return 0


def remove_labels(
    call: Call,
    target: TargetArgument,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help=f"Of {', '.join(NAMES)}. Default: all.", show_default=False),
    ] = None,
    *,
    tenant: TenantOption = "",
) -> int:
    """Take labels of TARGET away; what others say of it stays.

    Examples:
      ctx label remove salaries.pdf
      ctx label remove report.pdf status
    """
    if wrong := [name for name in names or () if name not in NAMES]:
        raise UsageError(f"there is no label {wrong[0]!r}", hint=f"there are: {', '.join(NAMES)}")
    labels = _labels(call)
    if not labels.remove(target, tuple(names or NAMES), tenant=tenant):
        raise NothingFoundError(f"{target} itself has no such labels", hint=f"see what holds: ctx label show {target}")
    return _show(call, labels, labels.listed())


def propose(
    call: Call, *, accept: Annotated[bool, typer.Option("--accept", help="Classify them as their pages say.")] = False
) -> int:
    """Find marks such as "Confidential" on the pages of documents that nobody has classified. They hold once they are
    accepted.

    Examples:
      ctx label propose
      ctx label propose --accept
    """
    labels = call.index().policy.labels()
    found = labels.proposals()
    if accept and found:
        labels.accept(found)
    call.show(
        "ctx.label/1",
        {"proposals": [asdict(each) | {"pages": list(each.pages)} for each in found], "accepted": accept},
        ((each.classification, each.filename, f"page {', '.join(map(str, each.pages))}", each.mark) for each in found),
    )
    if not found:
        call.note("no page has a mark that nobody has decided on")
    elif accept:
        call.say(f"{len(found)} documents are classified as their pages say")
    else:
        call.say("none of this holds yet; accept it with: ctx label propose --accept")
    return 0


def _labels(call: Call) -> Labels:
    index = call.index()
    if not index.exists:
        raise index.nothing_found()
    return index.policy.labels()


def _show(call: Call, labels: Labels, found: Sequence[Label]) -> int:
    files = labels.names()
    lines = (
        (
            each.value if each.name == "classification" else f"{each.name}={each.value}",
            each.target,
            _filename(each.target, files),
            *([each.tenant] if each.tenant else []),
        )
        for each in found
    )
    listed = [{**asdict(each), "filename": _filename(each.target, files) or None} for each in found]
    call.show("ctx.label/1", {"labels": listed}, lines)
    return 0


def _filename(target: str, files: Mapping[str, str]) -> str:
    """The file of a document or page; empty for what is none."""
    kind, _, rest = target.partition(":")
    return files.get(rest.partition("#")[0], "") if kind in ("document", "page") else ""


LABEL = Verbs(
    """TARGET is a document (name, path, pattern, title or id), a ref (page:ID#7, code:PATH, commit:SHA, memory:ID),
    path:PATTERN or tag:TAG. A pattern that begins with / is that of a whole path, any other may begin at any folder;
    `*` stands for anything, and what lies below a folder is meant, too, also files that come later. What a level, a
    status, a module or a project means, a policy says (ctx policy), and packages can be restricted to them. Where
    several levels apply, the strictest holds; of the others that of the most specific target: the thing, its document,
    the longest pattern, a tag. In a pipe the fields of a line are separated by tabs.""",
    {"list": list_labels, "set": set_labels, "show": show_labels, "remove": remove_labels, "propose": propose},
)


_LISTED = 100
_FACTS = ("seq", "at", "kind", "principal", "tenant", "owner", "purpose", "action", "decision", "policy")


def list_entries(
    call: Call,
    *,
    principal: PrincipalOption = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Not before 7d or 12h ago, or 2027-01-31.")
    ] = None,
    denied: Annotated[bool, typer.Option("--denied", help="Only where something was denied.")] = False,
    limit: LimitOption = None,
) -> int:
    """List the decisions, the newest first: number, time, principal, tenant, purpose, allowed, redacted, denied.

    Examples:
      ctx audit
      ctx audit list --principal ann --since 7d --denied
      ctx audit list --json | jq -r '.entries[] | select(.denied > 0) | .decision'
    """
    start = "" if since is None else _start(since)
    with call.index() as index:
        entries = index.policy.audit().entries(principal=principal, since=start, denied=denied, limit=limit or _LISTED)
    lines = (
        (
            each.seq,
            each.at,
            each.principal,
            each.tenant,
            each.purpose if each.kind == "access" else each.kind,
            each.allowed,
            each.redacted,
            each.denied,
        )
        for each in entries
    )
    call.show("ctx.audit/1", {"entries": [each.to_dict() for each in entries]}, lines)
    if not entries and not call.as_json:
        call.note("nothing is recorded that fits; without a policy nothing is decided, and nothing recorded")
    return 0


def _start(since: str) -> str:
    from datetime import UTC, datetime, timedelta

    number, unit = since[:-1], since[-1:]
    if number.isdecimal() and len(number) < 6 and unit in {"d", "h"}:
        ago = timedelta(days=int(number)) if unit == "d" else timedelta(hours=int(number))
        return (datetime.now(UTC) - ago).isoformat()
    try:
        return datetime.fromisoformat(since).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise UsageError(f"--since cannot be {since!r}", hint="say 7d, 12h, or a date such as 2027-01-31") from None


def show_entry(
    call: Call,
    entry: Annotated[str, typer.Argument(metavar="ID", help="An entry's number, or a decision's id.")],
) -> int:
    """Print one decision: the refs, and what was decided about each.

    Examples:
      ctx audit show 42
    """
    with call.index() as index:
        found = index.policy.audit().entry(entry)
    call.show("ctx.audit/1", {"entry": found.to_dict()}, _entry_lines(found))
    return 0


def _entry_lines(entry: MemoryAccessAudit) -> Iterator[tuple[object, ...]]:
    fields = entry.to_dict()
    yield from ((name, fields[name]) for name in _FACTS)
    yield "policies", ", ".join(entry.policies)
    yield "allowed, redacted, denied", entry.allowed, entry.redacted, entry.denied
    yield from ((name, fields[name]) for name in ("trace_id", "problem", "note") if fields[name])
    yield from ((effect, ref) for ref, effect in entry.refs)
    if entry.more_refs:
        yield "more", entry.more_refs


def verify(call: Call) -> int:
    """Find any entry that was changed, moved, added or is missing (exit code 1); also a backup that was brought back
    and is older, because what came after it is gone.

    Examples:
      ctx audit verify
    """
    with call.index() as index:
        return _verified(call, index.policy.audit().verify())


def accept(call: Call) -> int:
    """Record that you know why `verify` finds something. The record begins anew behind what is there now.

    Examples:
      ctx audit accept
    """
    from research.governance import owner_principal

    with call.index() as index:
        return _verified(call, index.policy.audit().accept(owner_principal()))


def _verified(call: Call, found: Verification) -> int:
    lines: list[tuple[str, object]] = [("broken", problem) for problem in found.problems]
    lines += [("broken", f"{found.more_problems} more")] * bool(found.more_problems)
    if found.ok:
        lines.append(("ok", f"{found.entries:,} entries, to number {found.last}"))
    call.show("ctx.audit/1", {"verification": asdict(found)}, lines)
    if not found.ok:
        call.say("this is not the record that was written; if you know why (a restored backup): ctx audit accept")
    return 0 if found.ok else 1


AUDIT = Verbs(
    """Once there is a policy, every decision about what may be read is recorded before anything is shown: who asked,
    for what, the refs and what was decided about each; never a text, a title or a question. Each entry holds the hash
    of the one before it, and the last is also known in your config folder. Entries are kept for `audit_days` (90). In a
    pipe the fields of a line are separated by tabs.""",
    {"list": list_entries, "show": show_entry, "verify": verify, "accept": accept},
)
