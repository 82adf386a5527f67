"""ctx label: how confidential things are, and their status, module and project, for policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cli.call import Call, Verbs
from cli.options import TargetArgument, TenantOption
from research.errors import NothingFoundError, UsageError

if TYPE_CHECKING:
    from research.governance import Label, Labels

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
    from cli.policy import resource_fields

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
