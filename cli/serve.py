"""ctx serve, mcp and token: the index for programs, browsers and agents, over HTTP or over stdin and stdout."""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, cast

import typer

from cli.call import Call, Verbs, offers
from cli.options import AllowIngestOption, ExpiresOption, IdsArgument, PrincipalOption, RootOption, TenantOption
from cli.output import on_terminal, write, write_document
from research.errors import CtxError, UsageError

if TYPE_CHECKING:
    import anyio

    from research.index import Index
    from research.service import IndexServer, JobRunner, ServeOptions, Service, TextIn, TokenEntry

DEFAULT_PORT = 8765


def serve(
    call: Call,
    *,
    port: Annotated[
        int, typer.Option("--port", metavar="N", help="The port on 127.0.0.1; 0 takes any.", min=0, max=65535)
    ] = DEFAULT_PORT,
    socket: Annotated[
        Path | None, typer.Option("--socket", metavar="PATH", help="Listen on this socket file instead of a port.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="FILE", help="Where the token is; made if missing. Default: state folder."
        ),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let every user and program of this machine in.")
    ] = False,
    allow_ingest: AllowIngestOption = False,
    root: RootOption = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Answer to this name, too: that of a proxy before it."),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option("--cors-origin", metavar="URL", help="Let pages of this origin ask from a browser."),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
) -> int:
    """Answers questions over HTTP (see /docs), as MCP tools at /mcp, and on a page for people at /; /metrics has its
    times and counts, as Prometheus reads them. It listens on this machine alone, and asks everybody for a token: the
    link it prints opens the page once, programs send the token of the token file (Authorization: Bearer). ctx token
    makes further ones for others.

    Documents are added while it runs by ctx ingest as ever, or through it with --allow-ingest. Ctrl-C or SIGTERM ends
    it in good order, within ten seconds.

    Examples:
      ctx serve
      ctx serve --open
      ctx serve --port 0 --json
      ctx serve --allow-ingest --root ~/papers
      ctx serve --socket ~/.ctx.sock
      curl -H "Authorization: Bearer $(cat TOKENFILE)" http://127.0.0.1:8765/api/search?q=parental+leave
    """
    check_installed("ctx serve", "fastapi", "uvicorn", "mcp", "prometheus_client")
    from research.service import ServeOptions

    if socket is not None and port != DEFAULT_PORT:
        raise UsageError("--port and --socket exclude each other", hint="leave one of them out")
    if no_token and token_file is not None:
        raise UsageError("--no-token and --token-file exclude each other", hint="leave one of them out")
    options = ServeOptions(
        port=port,
        socket=None if socket is None else socket.expanduser().absolute(),
        token_file=None if token_file is None else token_file.expanduser().absolute(),
        token_needed=not no_token,
        allow_ingest=allow_ingest,
        roots=read_roots(root or [], allow_ingest=allow_ingest),
        hosts=tuple(allow_host or ()),
        cors_origins=tuple(cors_origin or ()),
    )
    index = call.index_of(call.settings())
    if not index.exists and not allow_ingest:
        nothing = index.nothing_found()
        raise type(nothing)(nothing.message, hint=f"{nothing.hint}, or start with --allow-ingest")
    if index.exists:
        index.documents.totals()  # whoever starts it hears that it cannot be read, and not the first who asks
    return _serve(call, index, options, open_page=open_page)


def _serve(call: Call, index: Index, options: ServeOptions, *, open_page: bool) -> int:
    from ingest import start_job
    from research.service import IndexServer, address_of, assemble, listen

    _allow_many_files()
    made = assemble(index, options, start_job=start_job)
    with listen(options) as listening:
        link = made.link(address_of(listening))

        def started() -> None:
            _tell(call, index, options, address_of(listening), link)
            if open_page and options.socket is None:
                import webbrowser

                webbrowser.open(link)

        server = IndexServer(made.service, made.app, on_started=started)
        try:
            with _stopped_by_signals(server):
                server.run([listening])
        finally:
            if options.socket is not None:
                options.socket.unlink(missing_ok=True)
    call.say("stopped")
    return 0


def _tell(call: Call, index: Index, options: ServeOptions, address: str, link: str) -> None:
    """The address on stdout, for whoever started it; the link, which is for one person and once, on stderr."""
    from research.service import default_token_file

    token_file = str(options.token_file or default_token_file()) if options.token_needed else ""
    if call.as_json:
        facts = {"url": address, "login_url": link, "token_file": token_file, "index": str(index.root)}
        write_document("ctx.serve/1", {**facts, "pid": os.getpid()})
        return
    write(f"{address}\n")
    call.say(f"serving {index.root}")
    if options.socket is None:
        call.say(f"open {link}" + ("  (once, within ten minutes)" if options.token_needed else ""))
    if options.token_needed:
        call.say(f"programs send the token in {token_file}")
    else:
        call.note("without a token every user and program of this machine can read the index")
    call.say("Ctrl-C ends it")


@contextmanager
def _stopped_by_signals(server: IndexServer) -> Iterator[None]:
    """Both ask it to end in good order; the second time at once."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, frame: FrameType | None) -> None:
        server.stop()

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _allow_many_files() -> None:
    """Every connection is one. Many systems begin with 1,024 and permit more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


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


INSTALL = "pip install 'ctx-research[serve]'"


@offers(without=("as_json",))  # stdout is the protocol's
def mcp(
    call: Call,
    *,
    allow_ingest: AllowIngestOption = False,
    root: RootOption = None,
    text_in: Annotated[
        str | None,
        typer.Option(
            "--text-in",
            metavar="content|structured",
            help="Where results have their text. Default: where the client is known to show it.",
        ),
    ] = None,
) -> int:
    """An agent's program starts it and talks to it over stdin and stdout (Model Context Protocol). It offers the tools
    ask, search, get_page, page_image, list_documents and outline, remember, recall and build_turn for what is told, and
    with --allow-ingest also ingest; every page is a resource at ctx://doc/ID/page/N. Nothing but the protocol is ever
    written to stdout; what it logs goes to --log-file. It ends with its stdin, or by Ctrl-C or SIGTERM.

    docs/agents.md has the lines for Claude Code, Claude Desktop, VS Code and Codex. ctx serve offers the
    same tools over HTTP at /mcp.

    Examples:
      ctx mcp
      ctx mcp --index ~/papers/.ctx
      ctx mcp --allow-ingest --root ~/papers
      claude mcp add ctx -- ctx mcp --index ~/papers/.ctx
    """
    check_installed("ctx mcp", "mcp")
    roots = read_roots(root or [], allow_ingest=allow_ingest)
    if allow_ingest and not roots:
        raise UsageError("--allow-ingest needs a folder", hint="name what may be added: --root DIR")
    if text_in not in (None, "content", "structured"):
        raise UsageError(f"--text-in: {text_in!r} is not one of content, structured", hint="leave it out if in doubt")
    index = call.index_of(call.settings())
    if sys.stdin.isatty():
        call.say("an agent's program starts this and talks to it; see docs/agents.md. Ctrl-D ends it")
    gc.disable()  # what is loaded now stays: to look for garbage in it again and again is a tenth of the start
    # From here on what any library prints goes to stderr, and nobody else reads what the client sends.
    stdin, stdout = _own(0, os.O_RDONLY), _own(1, os.O_WRONLY)
    service = _warmed(index)
    try:
        import anyio

        from research.service import serve_stdio

        placed = cast("TextIn | None", text_in)
        serve = partial(serve_stdio, jobs=_jobs(index) if roots else None, roots=roots, text_in=placed)
        anyio.run(_serve_streams, partial(serve, service, os.fdopen(stdin, "rb"), os.fdopen(stdout, "wb")))
    finally:
        index.close(collections=False)
    return 0


def check_installed(command: str, *modules: str) -> None:
    """Raise if the extra is missing, and say which."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise CtxError(f"{command} needs {', '.join(missing)}, which is not installed", hint=INSTALL)


def read_roots(given: list[Path], *, allow_ingest: bool) -> tuple[Path, ...]:
    """The folders from which documents may be added."""
    if given and not allow_ingest:
        raise UsageError("--root says what may be added, and nothing may", hint="add --allow-ingest, or leave it out")
    folders = tuple(path.expanduser().absolute() for path in given)
    for folder, path in zip(folders, given, strict=True):
        if not folder.is_dir():
            raise UsageError(f"{path} is no folder", hint="name one that exists with --root DIR")
    return folders


def _own(number: int, mode: int) -> int:
    """The client's pipe under a number of our own; what bore it until now leads nowhere, or to stderr."""
    own = os.dup(number)  # not inherited by processes we start
    instead = os.dup(2) if mode == os.O_WRONLY else os.open(os.devnull, mode)
    os.dup2(instead, number)
    os.close(instead)
    return own


def _warmed(index: Index) -> Service:
    """The index is loaded in a thread that begins here, beside the SDK."""
    from research.service import Service

    service = Service(index)
    service.warm_up()
    return service


def _jobs(index: Index) -> JobRunner:
    from ingest import start_job
    from research.service import JobRunner

    return JobRunner(partial(start_job, index.root, index.settings))


async def _serve_streams(serve: Callable[[], Awaitable[None]]) -> None:
    """Until the client is through, or a signal comes."""
    import anyio

    gc.freeze()
    gc.enable()
    async with anyio.create_task_group() as group:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            group.start_soon(_end_by, signals, group.cancel_scope)
            await serve()
            group.cancel_scope.cancel()


async def _end_by(signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope) -> None:
    async for _ in signals:
        scope.cancel()
