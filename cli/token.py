"""ctx token: tokens for others to ask a server of this index."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cli.call import Call, Verbs
from cli.options import ExpiresOption, IdsArgument, PrincipalOption, TenantOption
from cli.output import on_terminal
from research.errors import UsageError

if TYPE_CHECKING:
    from research.index import Index
    from research.service import TokenEntry

_NEW = "ctx token new --principal NAME --tenant T"


def new_token(
    call: Call, *, principal: PrincipalOption = None, tenant: TenantOption = "", expires: ExpiresOption = ""
) -> int:
    """Make a token for somebody else, who then asks as the principal and sees what belongs to the tenant. It is printed
    once and kept nowhere: only its hash is.

    Examples:
      ctx token new --principal ann --tenant lab
      ctx token new --principal build-bot --tenant ci --expires 30d > token
    """
    from research.governance import has_policies
    from research.service import make_token

    if principal is None or not tenant:
        raise UsageError("a token needs a principal and a tenant", hint=_NEW)
    index = _index(call)
    token, entry = make_token(index.paths, principal, tenant, days=_days(expires) if expires else None)
    fields = {"token": token.reveal(), "created": _shown(entry)}
    call.show("ctx.token/1", fields, [(token.reveal(),)])
    until = f", until {entry.expires_at}" if entry.expires_at else ""
    call.say(f"token {entry.id} for {principal} of {tenant}{until}; it is not shown again")
    if not has_policies(index.settings.policy):
        call.note("without a policy it opens nothing but memories of its own tenant; see: ctx policy example")
    return 0


def _days(expires: str) -> int:
    """Whole days, as a number, with a `d`, or to a date."""
    if (days := expires.removesuffix("d")).lstrip("-").isdecimal() and len(days) < 10:
        return int(days)
    try:
        return (datetime.fromisoformat(expires).replace(tzinfo=UTC) - datetime.now(UTC)) // timedelta(days=1) + 1
    except ValueError:
        raise UsageError(f"--expires cannot be {expires!r}", hint="whole days, such as 30d, or 2027-01-31") from None


def list_tokens(call: Call) -> int:
    """List them: id, principal, tenant, made, until.

    Examples:
      ctx token
    """
    from research.service import tokens_of

    entries = tokens_of(_index(call).paths)
    lines = (
        (
            each.id,
            each.principal,
            each.tenant,
            each.created_at,
            f"{each.expires_at}{' (over)' if on_terminal() and _is_over(each) else ''}",
        )
        for each in entries
    )
    call.show("ctx.token/1", {"tokens": [_shown(entry) for entry in entries]}, lines)
    if not entries and not call.as_json:
        call.note(f"no further tokens open this index; make one with: {_NEW}")
    return 0


def revoke(call: Call, ids: IdsArgument = None) -> int:
    """Make tokens open nothing any more.

    Examples:
      ctx token revoke 3f9a12cc
    """
    from research.service import revoke_tokens

    if not ids:
        raise UsageError("revoke needs the id of a token", hint="see them with: ctx token list")
    revoked = revoke_tokens(ids)
    call.show("ctx.token/1", {"revoked": [_shown(each) for each in revoked]}, ((each.id,) for each in revoked))
    call.say(f"revoked; {'it opens' if len(revoked) == 1 else 'they open'} nothing any more")
    return 0


def _index(call: Call) -> Index:
    index = call.index()
    if index.exists:
        index.catalog  # noqa: B018  one that cannot be opened needs no tokens
    return index


def _shown(entry: TokenEntry) -> dict[str, str | bool | None]:
    """All but the hash, which nobody need know."""
    return {
        "id": entry.id,
        "principal": entry.principal,
        "tenant": entry.tenant,
        "created_at": entry.created_at,
        "expires_at": entry.expires_at or None,
        "expired": _is_over(entry),
    }


def _is_over(entry: TokenEntry) -> bool:
    return entry.is_over(datetime.now(UTC))


TOKEN = Verbs(
    """The token of whoever runs ctx serve lies in a file and needs no command. A server that runs takes note of new and
    revoked tokens by itself. A token opens the index that it was made for. In a pipe the fields of a line are separated
    by tabs.""",
    {"list": list_tokens, "new": new_token, "revoke": revoke},
)
