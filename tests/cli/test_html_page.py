"""`ctx ask --html`: one page that stands alone, whatever the documents hold."""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cli.html import answer_page
from research.models import MatchedRegion, Passage, ResearchContext
from tests.cli.answers import HOSTILE, SENTENCE, answer, marker, quote, source
from tests.in_process import Ran
from tests.pace import draws

EVIL = (
    '<script>alert(1)</script><img src=x onerror=alert(2)>"\' onmouseover="alert(3) </style></title></textarea>'
    "<!-- --><iframe src='http://evil/'></iframe>&lt;&#x3c;javascript:alert(4)<a href='javascript:1'>x</a>" + HOSTILE
)

VOID = {"meta", "img"}
TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "span", "section", "ul", "ol",
    "li", "blockquote", "a", "article", "div", "details", "summary", "figure", "figcaption", "img", "svg", "rect",
    "mark", "table", "tr", "td", "th", "pre", "footer",
}  # fmt: skip
ATTRIBUTES = {
    "class", "id", "href", "src", "alt", "dir", "lang", "charset", "name", "content", "http-equiv", "aria-hidden",
    "viewbox", "preserveaspectratio", "x", "y", "width", "height",
}  # fmt: skip


class Page(HTMLParser):
    """A page taken apart: every element with its attributes, and the text by element."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, *tags: str) -> str:
        return "".join(data for tag, data in self.texts if not tags or tag in tags)


def check_alone(page: Page) -> None:
    """It loads nothing, runs nothing, and has only what we put there."""
    policy = page.all("meta")[1]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert policy["content"].startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'")
    assert {tag for tag, _ in page.elements} <= TAGS
    style = page.text("style")
    assert style.startswith("/* Colours")
    assert "url(" not in style
    assert "@import" not in style
    for tag, attributes in page.elements:
        assert set(attributes) <= ATTRIBUTES, tag
        href, src = attributes.get("href"), attributes.get("src")
        assert href is None or re.fullmatch(r"#source-\d+|file:///[\w.~/%-]*#page=\d+", href, re.ASCII)
        assert src is None or re.fullmatch(r"data:image/webp;base64,[A-Za-z0-9+/=]+", src)


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("pictures") / "page.png"
    Image.new("RGB", (1700, 2200), "white").save(file)
    return str(file)


def hostile_answer(picture: str) -> ResearchContext:
    text = f"# {EVIL}\n\n{EVIL}\n\n|{EVIL}|x|\n|---|---|\n|1|2|\n\n```\n{EVIL}\n```\n- {EVIL}"
    passages = [Passage(text, 0.9, (-1, 0.2, 9, 0.3))]
    evil = source(EVIL, 1, EVIL, page_label=EVIL, section_path=EVIL, title=EVIL, suspicious=[EVIL],
                  passages=passages, image_path=picture)  # fmt: skip
    forged = source("b.pdf", 2, EVIL)
    forged.link = "javascript:alert(1)//file:///"
    return answer([evil, forged], [quote(EVIL, 1), quote(f"|{EVIL}|", 2)], query=EVIL, level="high")


def test_nothing_of_a_document_becomes_part_of_the_page(picture: str) -> None:
    page = Page(answer_page(hostile_answer(picture), marker("alert", "<")))
    check_alone(page)
    assert "<script>alert(1)</script>" in page.text("p", "mark"), "it is shown as it stands"
    assert page.text("h1").startswith("<script>alert(1)</script><img src=x onerror=alert(2)>")
    assert page.text().count("<script>") > 10
    assert not set(page.text()) & set("\x1b\x9b\x07\x00\u202e\u2066\ud800")
    assert [a["id"] for a in page.all("article")] == ["source-1", "source-2"]
    assert len(page.all("a")) == 4, "two citations, a name and a picture; what is no file is no link"


@draws(60)
@given(st.text(st.one_of(st.characters(), st.sampled_from("<>&\"'/|#`\n"))))
def test_whatever_a_document_holds_the_page_is_whole(text: str) -> None:
    context = answer([source(text or "a", 1, text, section_path=text, page_label=text)], [quote(text)], query=text)
    check_alone(Page(answer_page(context, marker("a", "<"))))


def test_answer_passages_and_pictures_with_boxes(picture: str) -> None:
    passages = [
        Passage("The bubble burst.", 0.9, (0.1, 0.2, 0.5, 0.3), section_path="Crisis > Causes"),
        Passage("", 0.8, (0.1, 0.5, 0.5, 0.6)),
    ]
    context = answer(
        [source(passages=passages, page_label="iv", image_path=picture), source("b.pdf", 7, passages=[],
         regions=[MatchedRegion((0.0, 0.0, 1.0, 1.0), 0.5)], thumbnail_path=picture)],
        [quote("The bubble burst.", 1), quote("| Plan | Premium |\n|---|---|\n| Standard | $45 |", 2)],
    )  # fmt: skip
    html = answer_page(context, marker("bubble"))
    page = Page(html)
    check_alone(page)
    assert page.text("title", "h1") == "What burst?" * 2
    assert "The answer is very likely on these pages" in page.text("h2")
    assert "2 of 48 pages" in page.text("p")
    assert [a["href"] for a in page.all("a")][:2] == ["#source-1", "#source-2"]
    assert "crisis.pdf, page 3 (printed iv)" in page.text("span")
    assert page.text("th") == "PlanPremium"
    assert page.text("mark") == "bubble" * 5  # in the quote, the passage, and the pages' own texts
    assert "Crisis > Causes" in page.text("p")
    boxes = [[float(a[name]) for name in ("x", "y", "width", "height")] for a in page.all("rect")]
    assert boxes == [[0.094, 0.197, 0.412, 0.106], [0.094, 0.497, 0.412, 0.106], [0.0, 0.0, 1.0, 1.0]]
    shown = Image.open(io.BytesIO(base64.b64decode(page.all("img")[0]["src"].partition(",")[2])))
    assert shown.size[0] <= 900
    assert page.all("img")[0]["alt"] == "Picture of crisis.pdf, page 3 (printed iv)"
    assert html.index("blockquote") < html.index("<article")


def test_when_nothing_answers_the_page_says_so() -> None:
    page = Page(answer_page(answer([source()], [quote()], level="none"), marker()))
    assert "Nothing seems to answer this" in page.text("h2")
    assert "48 pages were searched, and these are the nearest" in page.text("p")
    assert page.all("blockquote") == []
    empty = Page(answer_page(answer([], level="none"), marker()))
    assert "48 pages were searched" in empty.text("p")


@pytest.mark.parametrize("content", [None, b"", b"no picture", b"\x89PNG\r\n\x1a\n broken"])
def test_without_its_picture_a_page_is_text(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "page.png"
    if content is not None:
        file.write_bytes(content)
    page = Page(answer_page(answer([source(text=SENTENCE * 50, passages=[], image_path=str(file))]), marker()))
    assert page.all("img") == []
    assert "The housing bubble" in page.text("p")
    assert "…" in page.text("p")


Ask = Callable[..., Ran]


@pytest.fixture
def ask(call: Callable[..., Ran], filled: Path) -> Ask:
    def run(*args: str) -> Ran:
        return call("ask", "What made the housing bubble burst?", "--index", str(filled), *args)

    return run


def test_a_real_answer_in_a_file(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "answer.html"
    ran = ask("--html", str(file))
    assert (ran.code, ran.out) == (0, f"{file}\n")
    page = Page(file.read_text("utf-8"))
    check_alone(page)
    assert "housing" in page.text("mark")
    assert "steer" not in page.text("p")
    assert [p.name for p in tmp_path.iterdir() if p.name != "home"] == ["answer.html"], "nothing else is left behind"


def test_real_pictures_with_boxes(call: Callable[..., Ran], sample_index: Path, tmp_path: Path) -> None:
    file = tmp_path / "answer.html"
    asked = call("ask", "How long is sick pay paid?", "--html", str(file), "--index", str(sample_index))
    assert asked.code == 0
    page = Page(file.read_text("utf-8"))
    check_alone(page)
    assert len(page.all("img")) == len(page.all("article")) == 10
    assert len(page.all("rect")) >= 10
    assert file.stat().st_size < 2_000_000


def test_to_stdout(ask: Ask) -> None:
    ran = ask("--html", "-")
    check_alone(Page(ran.out))
    assert ran.out.startswith("<!doctype html>\n")


def test_a_file_that_exists_is_kept(ask: Ask, tmp_path: Path) -> None:
    file, link = tmp_path / "answer.html", tmp_path / "link.html"
    file.write_text("mine")
    link.symlink_to(file)
    for target in (file, link):
        ran = ask("--html", str(target))
        assert (ran.code, ran.out) == (2, "")
        assert f"{target} exists" in ran.err
        assert f"replace it: --html - > {target}" in ran.err
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("target", "words"),
    [("", "--html needs a file"), ("{tmp}", "is a folder"), ("{tmp}/none/a.html", "there is no folder")],
)
def test_a_place_where_no_file_can_be(ask: Ask, tmp_path: Path, target: str, words: str) -> None:
    ran = ask("--html", target.format(tmp=tmp_path))
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


def test_a_place_that_cannot_be_written(ask: Ask, tmp_path: Path) -> None:
    name = tmp_path / ("x" * 251 + ".html")
    ran = ask("--html", str(name))
    assert ran.code == 1
    assert "cannot be written: File name too long" in ran.err
    assert "/proc/answer.html cannot be written: " in ask("--html", "/proc/answer.html").err  # root neither
    full = ask("--html", "/dev/full")
    assert (full.code, full.out) == (1, "")
    assert "/dev/full cannot be written: No space left on device\nhint: free some space, or name another" in full.err


def test_a_pipe_or_a_device_is_written_to_and_stays(ask: Ask, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdout.write(open(sys.argv[1]).read(9))", str(pipe)],
        stdout=subprocess.PIPE,
    ) as reader:
        assert ask("--html", str(pipe)).code == 0, "a reader may leave before all is written"
        assert reader.communicate()[0] == b"<!doctype"
    assert pipe.is_fifo()
    assert ask("--html", os.devnull).code == 0, "a device is no file that would be lost"
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("other", [["--json"], ["--batch", "-"]])
def test_one_answer_at_a_time(call: Callable[..., Ran], filled: Path, tmp_path: Path, other: list[str]) -> None:
    question = [] if "--batch" in other else ["housing"]
    ran = call("ask", *question, "--html", str(tmp_path / "a.html"), *other, "--index", str(filled))
    assert ran.code == 2
    assert f"--html and {other[0]} are two answers" in ran.err
    assert not (tmp_path / "a.html").exists()
