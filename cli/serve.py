"""ctx serve: an open index for programs, agents and browsers of this machine."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from cli.call import Call
from cli.mcp import check_installed, read_roots
from cli.options import AllowIngestOption, RootOption
from cli.output import write, write_document
from research.errors import UsageError

if TYPE_CHECKING:
    from research.index import Index
    from research.service import IndexServer, ServeOptions

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
