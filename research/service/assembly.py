"""All parts of a server put together: the service, its routes, and the guard before them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from research.observe.prometheus import PrometheusRecorder
from research.observe.recorder import recorder_for
from research.service.access import AccessRules
from research.service.app import create_app
from research.service.guard import Guard
from research.service.login import login_router
from research.service.metrics import Measured, measure, metrics_router
from research.service.options import ServeOptions
from research.service.service import Service
from research.service.sessions import Sessions
from research.service.tokens import TokenBook, default_token_file, owner_token
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
    measure(counts, service)
    app = create_app(service, [login_router(sessions), metrics_router(counts), web_router(service)])
    guard = Guard(app, rules=rules, tokens=tokens, sessions=sessions, limits=options.limits)
    return Assembled(service, Measured(guard, recorder), sessions)
