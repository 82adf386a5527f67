"""All parts of a server put together: the service, its routes, and the guard before them."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from research.conversation.metrics import ContextBuilderMetrics
from research.conversation.turns import TurnMaker
from research.observe import close_recorder, recorder_for
from research.observe.prometheus import PrometheusRecorder
from research.service.access import AccessRules
from research.service.app import create_app
from research.service.contexts import contexts_router
from research.service.experiences import experiences_router
from research.service.guard import Guard
from research.service.ingest_routes import ingest_router
from research.service.jobs import JobRunner
from research.service.login import login_router
from research.service.mcp.ingesting import IngestDoor
from research.service.mcp.mount import McpMount
from research.service.mcp.toolbox import Toolbox
from research.service.memories import memories_router
from research.service.metrics import Measured, measure, metrics_router
from research.service.options import ServeOptions
from research.service.packages import packages_router
from research.service.server import STOP_JOB_SECONDS
from research.service.service import Service
from research.service.sessions import Sessions
from research.service.tokens import TokenBook, default_token_file, owner_token
from research.service.uploads import Uploads
from research.service.web import web_router

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from subprocess import Popen

    from research.index import Index
    from research.service.asgi import Application
    from research.settings import Settings

    StartJob = Callable[[Path, Settings, Sequence[Path]], Popen[bytes]]


@dataclass(frozen=True, slots=True)
class Assembled:
    """What a server runs."""

    service: Service
    app: Application
    sessions: Sessions

    def link(self, address: str) -> str:
        """What opens the page in a browser: its token stands in the fragment, which no browser sends anywhere."""
        if not self.service.options.token_needed:
            return f"{address}/"
        return f"{address}/#token={self.sessions.new_link().reveal()}"


def assemble(index: Index, options: ServeOptions, *, start_job: StartJob) -> Assembled:
    """`start_job` begins the process of an ingest: this package knows nothing of the one that does it. Raises CtxError
    for a token file that is not safe, and for hosts and origins that are none."""
    rules = AccessRules.of(options.hosts, options.cors_origins, token_needed=options.token_needed)
    owner_file = None
    if options.token_needed:
        owner_file = options.token_file or default_token_file()
        owner_token(owner_file)  # made here, where a person sees what is wrong with it
    tokens = TokenBook(index.root, owner_file=owner_file)
    sessions = Sessions(tokens)
    counts = PrometheusRecorder()
    recorder = recorder_for(os.environ, counts)
    index.recorder = recorder
    service = Service(index, options, recorder=recorder)
    service.when_closing.append(partial(asyncio.to_thread, close_recorder, recorder))
    jobs, uploads = _ingests(service, start_job)
    measure(counts, service, jobs)
    maker = TurnMaker(index, metrics=ContextBuilderMetrics(counts.registry))
    routers = [
        login_router(sessions),
        metrics_router(counts),
        memories_router(service, maker),
        contexts_router(service),
        ingest_router(jobs, uploads, options),
        web_router(service),
        experiences_router(service),
        packages_router(service),
    ]
    app = create_app(service, routers, {"/mcp": _mcp(service, start_job, maker)})
    guard = Guard(app, rules=rules, tokens=tokens, sessions=sessions, limits=options.limits)
    return Assembled(service, Measured(guard, recorder), sessions)


def _ingests(service: Service, start_job: StartJob) -> tuple[JobRunner, Uploads]:
    """Files that an earlier server took in and did not get to are taken up by this one."""
    index, limits = service.index, service.options.limits
    jobs = JobRunner(partial(start_job, index.root, index.settings), most_waiting=limits.jobs)
    uploads = Uploads(index.paths, limits)

    async def end() -> None:
        await asyncio.to_thread(jobs.stop, STOP_JOB_SECONDS)
        uploads.close()

    service.when_stopping.append(jobs.begin_stop)
    service.when_closing.append(end)
    if service.options.allow_ingest:
        service.when_started.append(partial(uploads.resume, jobs))
    return jobs, uploads


def _mcp(service: Service, start_job: StartJob, maker: TurnMaker) -> McpMount:
    """Tools for agents take their turns with everybody else. Nothing of the SDK is loaded before somebody wants it."""
    index, options = service.index, service.options

    def toolbox() -> Toolbox:
        door = None
        if options.allow_ingest and options.roots:
            door = IngestDoor(partial(start_job, index.root, index.settings), options.roots)
        return Toolbox(service, door, maker=maker)

    mount = McpMount(toolbox)
    service.when_stopping.append(mount.begin_stop)
    service.when_closing.insert(0, mount.close)
    return mount
