"""ctx mcp: the index as tools for an agent, over stdin and stdout."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from cli.call import Call, offers
from cli.options import AllowIngestOption, RootOption
from research.errors import CtxError, UsageError

if TYPE_CHECKING:
    import anyio

    from research.index import Index
    from research.service import JobRunner, Service, TextIn

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
        anyio.run(_serve, partial(serve, service, os.fdopen(stdin, "rb"), os.fdopen(stdout, "wb")))
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


async def _serve(serve: Callable[[], Awaitable[None]]) -> None:
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
