"""ctx classify: how confidential things are, for policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, complete_document, index_for
from research.errors import NothingFoundError, UsageError

if TYPE_CHECKING:
    from cli.options import Common
    from research.governance import Labels

DETAILS = """
LEVEL is Public, Internal, Confidential or Restricted; what that means, a policy says (ctx policy). TARGET is a document
(name, path, pattern, title or id), a ref (page:ID#7, code:PATH, commit:SHA, memory:ID), path:PATTERN or tag:TAG. A
pattern that begins with / is that of a whole path, any other may begin at any folder; `*` stands for anything, and what
lies below a folder is meant, too, also files that come later. Where several apply, the strictest holds. With TARGET
alone it tells what holds, without it what is classified. --proposals looks at all pages for marks such as
"Confidential"; they hold once they are accepted. In a pipe the fields of a line are separated by tabs.
"""

EPILOG = """
\b
Examples:
  ctx classify salaries.pdf Restricted
  ctx classify 'path:hr/*' Confidential
  ctx classify tag:press Public
  ctx classify salaries.pdf
  ctx classify --proposals
  ctx classify --proposals --accept
  ctx classify salaries.pdf --remove
"""


def command(
    ctx: typer.Context,
    *,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET",
            help="A document, a ref, path:PATTERN or tag:TAG.",
            autocompletion=complete_document,
        ),
    ] = None,
    level: Annotated[
        str | None, typer.Argument(metavar="LEVEL]", help="Public, Internal, Confidential or Restricted.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take its classification away.")] = False,
    proposals: Annotated[
        bool, typer.Option("--proposals", help="Marks found on pages, of documents that nobody has classified.")
    ] = False,
    accept: Annotated[bool, typer.Option("--accept", help="With --proposals: classify them so.")] = False,
    tenant: Annotated[str, typer.Option("--tenant", metavar="T", help="Whose memory or session it is.")] = "",
) -> int:
    from cli.views import list_labels, show_labels

    given = common(ctx)
    if (proposals and (target or remove)) or (accept and not proposals) or (remove and (level or not target)):
        raise UsageError("these options do not go together", hint="see: ctx classify --help")
    index = index_for(given)
    if not index.exists and target and not level:
        raise index.nothing_found()
    labels = index.policy.labels()
    if proposals:
        return _proposals(labels, given, accept=accept)
    if target is None:
        list_labels("ctx.classify/1", labels, given, ("classification",))
    elif level is not None:
        show_labels("ctx.classify/1", labels, given, labels.put(target, {"classification": level}, tenant=tenant))
    elif remove:
        if not labels.remove(target, ("classification",), tenant=tenant):
            raise NothingFoundError(f"{target} itself is not classified", hint=f"see what holds: ctx classify {target}")
        list_labels("ctx.classify/1", labels, given, ("classification",))
    else:
        _holding(labels, given, target, index.settings.default_classification, tenant)
    return 0


def _holding(labels: Labels, given: Common, target: str, default: str, tenant: str) -> None:
    """What a policy is told of it; a pattern or a tag is no thing, and has its label alone."""
    from cli.output import write_document, write_line
    from cli.views import resource_fields, show_labels, shown_name

    if target.startswith(("path:", "tag:")):
        show_labels("ctx.classify/1", labels, given, labels.listed(target))
        return
    names = labels.names()
    found = labels.holding(target, default=default, tenant=tenant)
    if given.as_json:
        things = [
            {
                "ref": each.ref,
                "filename": shown_name(each.ref, names) or None,
                **resource_fields(each),
            }
            for each in found
        ]
        write_document("ctx.classify/1", {"things": things})
        return
    for each in found:
        rest = [f"{name}={value}" for name in ("status", "module", "project") if (value := getattr(each, name))]
        write_line(each.classification, each.ref, shown_name(each.ref, names), *rest)


def _proposals(labels: Labels, given: Common, *, accept: bool) -> int:
    from dataclasses import asdict

    from cli.output import say, write_document, write_line

    found = labels.proposals()
    if accept and found:
        labels.accept(found)
    if given.as_json:
        listed = [asdict(each) | {"pages": list(each.pages)} for each in found]
        write_document("ctx.classify/1", {"proposals": listed, "accepted": accept})
    else:
        for each in found:
            pages = ", ".join(map(str, each.pages))
            write_line(each.classification, each.filename, f"page {pages}", each.mark)
    if not given.quiet:
        if not found:
            say("ctx: note: no page has a mark that nobody has decided on")
        elif accept:
            say(f"ctx: {len(found)} documents are classified as their pages say")
        else:
            say("ctx: none of this holds yet; accept it with: ctx classify --proposals --accept")
    return 0
