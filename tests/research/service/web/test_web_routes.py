"""The routes of the web page in this process: its files, what browsers may do with them, and the plain answer."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import httpx
import pytest

from research.models import ResearchContext
from research.service.problems import Problem
from research.service.web import answer_page, problem_page
from tests.cli.answers import answer, quote, source
from tests.research.service.serving_app import run_client as run
from tests.research.service.web.browsing import ANSWER, HANDBOOK, QUESTION, ROOT

FOLDER = ROOT / "research" / "service" / "web"
HARM = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'\u202e"


def test_files_are_kept_by_browsers_and_asked_for_again(tmp_path: Path) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        for path, kind in (
            ("/", "text/html"),
            ("/static/app.js", "text/javascript"),
            ("/static/base.css", "text/css"),
            ("/static/icons.svg", "image/svg+xml"),
        ):
            first = await client.get(path)
            assert (first.status_code, first.headers["content-type"].partition(";")[0]) == (200, kind)
            assert first.headers["cache-control"] == "no-cache"
            for known in (first.headers["etag"], f'"other", W/{first.headers["etag"]}'):
                again = await client.get(path, headers={"if-none-match": known})
                assert (again.status_code, again.content) == (304, b"")
            assert (await client.get(path, headers={"if-none-match": '"other"'})).status_code == 200

    run(work, tmp_path)


@pytest.mark.parametrize(
    "name", ["none.js", "index.html", "docs.html", "..%2Fweb.py", "%2e%2e", "redoc.standalone.js", "app.js/"]
)
def test_nothing_else_is_a_file(tmp_path: Path, name: str) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        refused = await client.get(f"/static/{name}")
        assert refused.status_code == 404
        assert refused.headers["content-type"] == "application/problem+json"

    run(work, tmp_path)


def test_the_page_of_the_interface_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        page = await client.get("/docs")
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self';" in policy
        assert "http" not in policy
        assert re.findall(r'(?:src|href)="(?!/)', page.text) == []
        for name in re.findall(r'"/static/(swagger[^"]+)"', page.text):
            served = await client.get(f"/static/{name}")
            assert served.content == files("fastapi_offline").joinpath("static", name).read_bytes()

    run(work, tmp_path)


def test_the_files_name_nothing_elsewhere_and_parse_no_html() -> None:
    """What the tests in a browser see in some views, for all of them: no other host, no way from text to HTML."""
    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8")
        addresses = set(re.findall(r"https?://[^\s\"'<]+", text)) - {"http://www.w3.org/2000/svg"}
        assert addresses == set(), path.name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser", text
        )
        if path.suffix == ".html":
            assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text), path.name
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 150_000, "it is small"


def test_marks_are_where_full_text_search_finds_words(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        texts = ["Parents have weeks of leave.", "", "𝒳 leave"]
        answer = await client.post("/api/matches", json={"question": "parental leave", "texts": texts})
        spans = answer.json()["matches"]
        words = [[text[start:end] for start, end in found] for text, found in zip(texts, spans, strict=True)]
        assert words == [["Parents", "leave"], [], ["leave"]]
        refused = await client.post("/api/matches", json={"question": "", "texts": []})
        assert refused.status_code == 422

    run(work, sample_index)


def test_the_plain_page_answers(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        page = await client.get("/ask", params={"q": QUESTION, "doc": ["2025", ""], "since": "", "sources": "3"})
        assert page.status_code == 200
        assert page.headers["cache-control"] == "no-store"
        shown = Shown.of(page.text)
        assert ANSWER in shown.text
        assert f"{HANDBOOK}, page 7 (printed 5)" in shown.text
        assert "saltmarsh-handbook-2024" not in shown.text
        assert page.text.count("<article") <= 3
        assert any(link.endswith("/pages/7/image") for link in shown.links)
        assert any(link.endswith("/file#page=7") for link in shown.links)
        assert shown.links.count(f"/?{page.request.url.query.decode()}") == 1
        nothing = Shown.of((await client.get("/ask", params={"q": "quantum chromodynamics of penguins"})).text)
        assert "Nothing seems to answer this" in nothing.text
        empty = await client.get("/ask", params={"q": "  "})
        assert (empty.status_code, empty.headers["location"]) == (303, "/")
        for wrong in ({"pages": "ninety"}, {"sources": "many"}, {"since": "soon"}):
            refused = await client.get("/ask", params={"q": "leave", **wrong})
            assert refused.status_code == 422
            assert "cannot be understood" in Shown.of(refused.text).text
        none = await client.get("/ask", params={"q": "leave", "doc": "nobody"})
        assert none.status_code == 404

    run(work, sample_index)


def test_the_plain_page_asks_who_one_is(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        page = await client.get("/ask", params={"q": QUESTION})
        assert page.status_code == 401
        assert 'action="/login"' in page.text
        assert ANSWER not in page.text
        assert QUESTION in Shown.of(page.text).text, "the question is not lost"

    run(work, sample_index, caller=None)


class Shown(HTMLParser):
    """What a browser makes of a page: its elements, links and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.sources: set[str] = set()
        self.parts: list[str] = []

    @classmethod
    def of(cls, page: str) -> Shown:
        shown = cls()
        shown.feed(page)
        shown.close()
        return shown

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "href" and tag == "a":
                self.links.append(value or "")
            if name == "src":
                self.sources.add(value or "")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.parts).split())


def hostile() -> ResearchContext:
    evil = source(HARM, 3, HARM, page_label=HARM, section_path=HARM, title=HARM, image_path="x", cut=True)
    return replace(answer([evil, evil], [quote(HARM)], query=HARM), truncated=True)


@pytest.mark.parametrize(
    "page",
    [
        answer_page(hostile(), lambda text: [(0, 4), (10, 12)], f'/?q="{HARM}'),
        problem_page(Problem(401, HARM, HARM, HARM), HARM),
    ],
)
def test_whatever_a_document_holds_is_text_on_the_plain_page(page: str) -> None:
    shown = Shown.of(page)
    assert "<img src=x onerror=alert(1)><script>alert(2)</script>" in shown.text
    assert "\u202e" not in shown.text, "nor does it turn what is read"
    assert "script" not in shown.tags
    assert not [name for name in shown.attributes if name.startswith("on") or name == "style"]
    assert all(source.startswith("/api/documents/aaaa/pages/3/") for source in shown.sources)
    assert all(link.startswith(("/", "#source-")) for link in shown.links)
    noted = "truncated: sources 1 and 2 are shown in part (budget 10000 tokens; raise it with max_tokens=)"
    assert (noted in shown.text) == bool(shown.sources)
