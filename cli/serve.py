"""ctx serve: an open index for programs, agents and browsers of this machine."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, index_of, settings_for
from research.errors import CtxError, UsageError

if TYPE_CHECKING:
    from cli.options import Common
    from research.index import Index
    from research.service import IndexServer, ServeOptions

DETAILS = """
Answers questions over HTTP (see /docs), as MCP tools at /mcp, and on a page for people at /. It listens on this
machine alone, and asks everybody for a token: the link it prints opens the page once, programs send the token of the
token file (Authorization: Bearer). ctx token makes further ones for others.

Documents are added while it runs by ctx ingest as ever, or through it with --allow-ingest. Ctrl-C or SIGTERM ends it in
good order, within ten seconds.
"""

EPILOG = """
\b
Examples:
  ctx serve
  ctx serve --open
  ctx serve --port 0 --json
  ctx serve --allow-ingest --root ~/papers
  ctx serve --socket ~/.ctx.sock
  curl -H "Authorization: Bearer $(cat TOKENFILE)" http://127.0.0.1:8765/api/search?q=parental+leave
"""

DEFAULT_PORT = 8765
INSTALL = "pip install 'ctx-research[serve]'"


def command(
    ctx: typer.Context,
    *,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", help="The port on 127.0.0.1; 0 takes any. Default: 8765.", show_default=False
        ),
    ] = None,
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
    allow_ingest: Annotated[
        bool, typer.Option("--allow-ingest", help="Let documents be uploaded, and folders below --root be added.")
    ] = False,
    root: Annotated[
        list[Path] | None,
        typer.Option("--root", metavar="DIR", help="A folder that may be added; with --allow-ingest. Repeatable."),
    ] = None,
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
    given = common(ctx)
    check_installed()
    from research.service import ServeOptions

    if socket is not None and port is not None:
        raise UsageError("--port and --socket exclude each other", hint="leave one of them out")
    if no_token and token_file is not None:
        raise UsageError("--no-token and --token-file exclude each other", hint="leave one of them out")
    if root and not allow_ingest:
        raise UsageError("--root says what may be added, and nothing may", hint="add --allow-ingest, or leave it out")
    options = ServeOptions(
        port=_port(DEFAULT_PORT if port is None else port),
        socket=None if socket is None else socket.expanduser().absolute(),
        token_file=None if token_file is None else token_file.expanduser().absolute(),
        token_needed=not no_token,
        allow_ingest=allow_ingest,
        roots=tuple(_folder(each) for each in root or ()),
        hosts=tuple(allow_host or ()),
        cors_origins=tuple(cors_origin or ()),
    )
    index = index_of(settings_for(given))
    if not index.exists and not allow_ingest:
        nothing = index.nothing_found()
        raise type(nothing)(nothing.message, hint=f"{nothing.hint}, or start with --allow-ingest")
    if index.exists:
        index.documents.totals()  # whoever starts it hears that it cannot be read, and not the first who asks
    return _serve(index, options, given, open_page=open_page)


def check_installed() -> None:
    """Raise if the extra is missing, and say which."""
    from importlib.util import find_spec

    missing = [name for name in ("fastapi", "uvicorn", "mcp", "prometheus_client") if find_spec(name) is None]
    if missing:
        raise CtxError(f"ctx serve needs {', '.join(missing)}, which is not installed", hint=INSTALL)


def _port(port: int) -> int:
    if not 0 <= port <= 65535:
        raise UsageError(f"{port} is no port", hint="--port N, from 1 to 65535; 0 takes any")
    return port


def _folder(path: Path) -> Path:
    folder = path.expanduser().absolute()
    if not folder.is_dir():
        raise UsageError(f"{path} is no folder", hint="name one that exists with --root DIR")
    return folder


def _serve(index: Index, options: ServeOptions, given: Common, *, open_page: bool) -> int:
    from ingest import start_job
    from research.service import IndexServer, address_of, assemble, listen

    _allow_many_files()
    made = assemble(index, options, start_job=start_job)
    with listen(options) as listening:
        link = made.link(address_of(listening))

        def started() -> None:
            _tell(index, options, given, address_of(listening), link)
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
    if not given.quiet:
        from cli.output import say

        say("ctx: stopped")
    return 0


def _tell(index: Index, options: ServeOptions, given: Common, address: str, link: str) -> None:
    """The address on stdout, for whoever started it; the link, which is for one person and once, on stderr."""
    import os

    from cli.output import say, write, write_document
    from research.service import default_token_file
    from research.text import one_line

    token_file = str(options.token_file or default_token_file()) if options.token_needed else ""
    if given.as_json:
        facts = {
            "url": address,
            "login_url": link,
            "token_file": token_file,
            "index": str(index.root),
            "pid": os.getpid(),
        }
        write_document("ctx.serve/1", facts)
        return
    write(f"{address}\n")
    if given.quiet:
        return
    say(f"ctx: serving {one_line(str(index.root))}")
    if options.socket is None:
        say(f"ctx: open {link}" + ("  (once, within ten minutes)" if options.token_needed else ""))
    if options.token_needed:
        say(f"ctx: programs send the token in {one_line(token_file)}")
    else:
        say("ctx: note: without a token every user and program of this machine can read the index")
    say("ctx: Ctrl-C ends it")


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
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
