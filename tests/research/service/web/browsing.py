"""A real server process and a real browser for the tests of the web page."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response

ROOT = Path(__file__).parents[4]
DESK = (1200, 820)
QUESTION = "How many weeks of parental leave does the 2025 handbook give?"
ANSWER = "The parent who gives birth, or who adopts first, has 18 weeks of leave on full wages."
HANDBOOK = "saltmarsh-handbook-2025.pdf"
ANSWER_PAGE = 7  # of the handbook


@dataclass(frozen=True)
class Served:
    """A running `ctx serve`."""

    url: str
    link: str  # opens the page once
    token: str
    process: subprocess.Popen[str]

    def asking(self, question: str = QUESTION) -> str:
        return f"{self.url}/?q={quote(question)}"

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=30)


@contextmanager
def served(index: Path, *options: str, port: int = 0, env: Mapping[str, str] | None = None) -> Iterator[Served]:
    """The real command on this index, on a port of loopback."""
    import os

    token_file = index.with_name(f"{index.name}.token")
    command = [sys.executable, "-P", "-m", "cli.main", "serve", "--index", str(index), "--port", str(port), "--json"]
    process = subprocess.Popen(
        [*command, "--token-file", str(token_file), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **(env or {})},
    )
    assert process.stdout is not None
    told = process.stdout.readline()
    assert told, process.communicate()[1]
    facts = json.loads(told)
    running = Served(facts["url"], facts["login_url"], token_file.read_text().strip(), process)
    try:
        yield running
    finally:
        running.stop()


@dataclass
class Watch:
    """What a browser did while a test drove it: all of it must be harmless."""

    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    statuses: list[tuple[int, str]] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def follow(self, context: BrowserContext) -> None:
        context.on("console", self._console)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("request", self._request)
        context.on("response", self._response)
        context.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))

    def _console(self, message: ConsoleMessage) -> None:
        # A status that the page expects (a session that is over) is told by the browser as an error, too.
        if message.type in ("error", "warning") and "the server responded with a status of" not in message.text:
            self.errors.append(message.text)

    def _request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme != "data":
            self.hosts.add(address.netloc)

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.statuses.append((response.status, urlsplit(response.url).path))

    def check(self, url: str, *, allowed: tuple[tuple[int, str], ...] = ()) -> None:
        assert self.errors == []
        assert self.dialogs == []
        assert self.hosts <= {urlsplit(url).netloc}, "no request to another host"
        assert [each for each in self.statuses if each not in allowed] == []


@dataclass
class Visit:
    """One person at the page."""

    page: Page
    watch: Watch
    server: Served

    def open(self, address: str = "") -> Page:
        self.page.goto(f"{self.server.url}{address}")
        return self.page

    def ask(self, question: str = QUESTION) -> Page:
        """By typing it, on a page that is open."""
        self.page.fill("#q", question)
        self.page.press("#q", "Enter")
        self.page.wait_for_selector("#answer[aria-busy='false'] .source")
        return self.page

    def close(self, *, allowed: tuple[tuple[int, str], ...] = ()) -> None:
        self.page.context.close()
        self.watch.check(self.server.url, allowed=allowed)


def visit(
    browser: Browser, server: Served, *, signed_in: bool = True, size: tuple[int, int] = DESK, **more: object
) -> Visit:
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **more)  # type: ignore[arg-type]
    context.set_default_timeout(30_000)
    watch = Watch()
    watch.follow(context)
    if signed_in:
        entered = context.request.post(f"{server.url}/api/login", data={"token": server.token})
        assert entered.status == 204
    return Visit(context.new_page(), watch, server)


def wait_for_picture(page: Page) -> None:
    page.wait_for_selector("#viewer[aria-busy='false'] .sheet .box")
    page.wait_for_function("document.querySelector('.sheet img').naturalWidth > 0")
