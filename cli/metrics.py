"""ctx metrics: what a running server counts, as Prometheus reads it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, index_of, settings_for
from research.errors import CtxError, UsageError

if TYPE_CHECKING:
    from research.index import Index
    from research.secret import Secret

DETAILS = """
Asks the server that ctx serve started on this machine for its /metrics, with the token of the token file, and prints
them: times of questions and of every phase of a turn, tokens, requests, jobs. Where none answers, it prints what can be
counted without one (documents, pages, memories, sessions), and says so. The format is Prometheus' own.
"""

EPILOG = """
\b
Examples:
  ctx metrics
  ctx metrics --url http://127.0.0.1:9000
  ctx metrics | grep thinking_
"""

WITHOUT = ("as_json",)  # Prometheus has a format of its own

DEFAULT_URL = "http://127.0.0.1:8765"
_SECONDS = 10.0
_MOST_BYTES = 16 << 20
_TOKEN_HINT = "name its token with --token-file FILE; ctx serve says where it is"


def command(
    ctx: typer.Context,
    *,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help=f"Of the server. Default: {DEFAULT_URL}.", show_default=False),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="Where its token is. Default: state folder.")
    ] = None,
) -> int:
    from cli.output import say, write
    from research.text import block

    given = common(ctx)
    text = _asked(url or DEFAULT_URL, _token(token_file))
    if text is None:
        if url is not None:
            raise CtxError(f"no server answers at {url}", hint="start one with: ctx serve")
        with index_of(settings_for(given)) as index:
            text = _counted(index)
        if not given.quiet:
            say(f"ctx: note: no server answers at {DEFAULT_URL}; these are counts of the index alone")
    write(block(text))
    return 0


def _asked(url: str, token: Secret | None) -> str | None:
    """What the server there says; None if there is none. A token goes to this machine alone."""
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    from research.address import parse_address

    try:
        local = parse_address(url).loopback
    except ValueError as error:
        raise UsageError(f"--url is no address: {error}", hint=f"--url {DEFAULT_URL}") from None
    parts = urlsplit(url)
    if not local or parts.scheme != "http" or parts.hostname is None:
        raise UsageError("--url names no server on this machine", hint=f"--url {DEFAULT_URL}")
    headers = {"Authorization": f"Bearer {token.reveal()}"} if token is not None else {}
    connection = HTTPConnection(parts.hostname, parts.port or 80, timeout=_SECONDS)
    try:
        connection.request("GET", "/metrics", headers=headers)
        answer = connection.getresponse()
        content = answer.read(_MOST_BYTES)
    except ConnectionRefusedError:
        return None
    except (OSError, HTTPException) as error:
        raise CtxError(f"the server at {url} does not answer: {type(error).__name__}", hint="see: ctx serve") from None
    finally:
        connection.close()
    if answer.status in {401, 403}:
        raise CtxError(f"the server at {url} wants another token", hint=_TOKEN_HINT)
    if answer.status != 200 or b"# HELP" not in content:
        raise CtxError(f"what answers at {url} is no ctx serve", hint="name its address with --url")
    return content.decode("utf-8", "replace")


def _token(file: Path | None) -> Secret | None:
    """The owner's; none is made here."""
    from research.service import default_token_file, owner_token

    path = default_token_file() if file is None else file.expanduser()
    if not path.exists():
        if file is not None:
            raise UsageError(f"there is no {file}", hint="ctx serve says where its token is")
        return None
    return owner_token(path)


def _counted(index: Index) -> str:
    status = index.admin.status()
    gauges = {
        "documents": ("Documents in the index.", status.documents),
        "pages": ("Pages in the index.", status.pages),
        "memories": ("Memories in the index, of all tenants.", status.memories),
        "sessions": ("Conversations that are kept.", status.sessions),
        "turns": ("Questions in them.", status.turns),
        "index_bytes": ("Size of the index on disk.", status.size_bytes),
    }
    return "".join(
        f"# HELP ctx_{name} {words}\n# TYPE ctx_{name} gauge\nctx_{name} {value}\n"
        for name, (words, value) in gauges.items()
    )
