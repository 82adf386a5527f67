"""ctx token: tokens for others to ask a server of this index."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, index_for
from research.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.options import Common
    from research.index import Index
    from research.service import TokenEntry

DETAILS = """
The token of whoever runs ctx serve lies in a file and needs no command. `new` makes a further one for somebody else,
who then asks as PRINCIPAL and sees what belongs to TENANT. It is printed once and kept nowhere: only its hash is. A
server that runs takes note of new and revoked tokens by itself. A token opens the index that it was made for.
In a pipe the fields of `list` are separated by tabs: id, principal, tenant, made, until.
"""

EPILOG = """
\b
Examples:
  ctx token new --principal ann --tenant lab
  ctx token new --principal build-bot --tenant ci --expires 30 > token
  ctx token list
  ctx token revoke 3f9a12cc
"""


class Action(StrEnum):
    new = "new"
    list = "list"
    revoke = "revoke"


def command(
    ctx: typer.Context,
    *,
    action: Annotated[
        Action, typer.Argument(metavar="new|list|revoke", help="What to do. Default: list.")
    ] = Action.list,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID...", help="The tokens to revoke.", show_default=False)
    ] = None,
    principal: Annotated[str | None, typer.Option("--principal", metavar="NAME", help="new: who asks with it.")] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", metavar="T", help="new: whose things they see.")] = None,
    expires: Annotated[
        int | None, typer.Option("--expires", metavar="DAYS", help="new: how long it lasts. Default: until revoked.")
    ] = None,
) -> int:
    given = common(ctx)
    if action is not Action.new and (principal, tenant, expires) != (None, None, None):
        raise UsageError(
            "--principal, --tenant and --expires belong to new", hint="ctx token new --principal NAME --tenant T"
        )
    if action is Action.revoke:
        _revoke(ids or (), given)
        return 0
    if ids:
        raise UsageError(f"{action} takes no {ids[0]!r}", hint="see: ctx token --help")
    index = index_for(given)
    if action is Action.new:
        if principal is None or tenant is None:
            raise UsageError("a token needs a principal and a tenant", hint="ctx token new --principal NAME --tenant T")
        _make(index, principal, tenant, expires, given)
    else:
        _list(index, given)
    return 0


def _make(index: Index, principal: str, tenant: str, days: int | None, given: Common) -> None:
    from cli.output import say, write_document, write_line
    from research.governance import has_policies
    from research.service import make_token

    if index.exists:
        index.catalog  # noqa: B018  one that cannot be opened needs no tokens
    token, entry = make_token(index.paths, principal, tenant, days=days)
    if given.as_json:
        write_document("ctx.token/1", {"token": token.reveal(), "created": _shown(entry)})
    else:
        write_line(token.reveal())
    if not given.quiet:
        until = f", until {entry.expires_at}" if entry.expires_at else ""
        say(f"ctx: token {entry.id} for {principal} of {tenant}{until}; it is not shown again")
        if not has_policies(index.settings.policy):
            say("ctx: note: without a policy it opens nothing but memories of its own tenant; see: ctx policy example")


def _list(index: Index, given: Common) -> None:
    from cli.output import on_terminal, say, write_document, write_line
    from research.service import tokens_of

    if index.exists:
        index.catalog  # noqa: B018
    entries = tokens_of(index.paths)
    if given.as_json:
        write_document("ctx.token/1", {"tokens": [_shown(entry) for entry in entries]})
        return
    for entry in entries:
        until = f"{entry.expires_at}{' (over)' if on_terminal() and _is_over(entry) else ''}"
        write_line(entry.id, entry.principal, entry.tenant, entry.created_at, until)
    if not entries and not given.quiet:
        say("ctx: note: no further tokens open this index; make one with: ctx token new --principal NAME --tenant T")


def _revoke(ids: Sequence[str], given: Common) -> None:
    from cli.output import say, write_document, write_line
    from research.service import revoke_tokens

    if not ids:
        raise UsageError("revoke needs the id of a token", hint="see them with: ctx token list")
    revoked = revoke_tokens(ids)
    if given.as_json:
        write_document("ctx.token/1", {"revoked": [_shown(entry) for entry in revoked]})
    else:
        for entry in revoked:
            write_line(entry.id)
    if not given.quiet:
        say(f"ctx: revoked; {'it opens' if len(revoked) == 1 else 'they open'} nothing any more")


def _shown(entry: TokenEntry) -> dict[str, str | bool | None]:
    """Of the hash nobody need know."""
    return {
        "id": entry.id,
        "principal": entry.principal,
        "tenant": entry.tenant,
        "created_at": entry.created_at,
        "expires_at": entry.expires_at or None,
        "expired": _is_over(entry),
    }


def _is_over(entry: TokenEntry) -> bool:
    from datetime import UTC, datetime

    return entry.is_over(datetime.now(UTC))
