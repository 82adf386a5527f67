"""Tools as plain functions: what they say, what they take, and what is said when they cannot."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops

from research.errors import (
    BusyError,
    CtxError,
    EncoderUnavailable,
    IndexUnusableError,
    InvalidContextTypeError,
    NothingFoundError,
    ProblemError,
    UsageError,
)
from research.governance import Principal
from research.index import Index
from research.models import Coverage, LegCoverage
from research.request import AskRequest, read_request
from research.service.mcp import tasks, tools
from research.service.mcp.results import (
    IN_CONTENT,
    IN_STRUCTURED,
    Budget,
    Reply,
    error_text,
    no_documents,
    text_in_for,
)
from research.service.mcp.server import _ingest_reply, allowed_paths, document_resources, resource_text
from research.service.mcp.tools import check_legs, coverage_notes
from tests.conftest import built_once
from tests.research.service.mcp_index import make_nasty

HANDBOOK = "saltmarsh-handbook-2025.pdf"


def wish(question: str, **said: object) -> AskRequest:
    """As `search` reads it."""
    return read_request("tool search", {"question": question, **said})


LEAVE = "How long is parental leave under the 2025 handbook?"


@pytest.fixture(scope="module")
def samples(sample_index: Path) -> Iterator[Index]:
    with Index(sample_index) as index:
        yield index


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index(built_once(tmp_path_factory, "nasty-index", make_nasty)) as index:
        yield index


@pytest.fixture(scope="module")
def everything(of_everything: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = Path(shutil.copytree(of_everything, tmp_path_factory.mktemp("mcp") / "index"))
    with Index.open(root) as opened:
        yield opened


def fields(reply: Reply) -> dict[str, Any]:
    assert reply.fields is not None
    return dict(reply.fields)


ENOUGH = Budget(4000)
ask, search = partial(tools.ask, budget=ENOUGH), partial(tools.search, budget=ENOUGH)
get_page, outline = partial(tools.get_page, budget=ENOUGH), partial(tools.outline, budget=ENOUGH)
list_documents, page_image = partial(tools.list_documents, budget=ENOUGH), tools.page_image


def test_what_is_asked_can_be_restricted(samples: Index) -> None:
    older = ask(samples, wish("How long is parental leave?", documents=["*2024*"]))
    assert "12 weeks" in older.text or "16 weeks" in older.text or HANDBOOK not in older.text
    assert {source["filename"] for source in (older.fields or {})["sources"]} <= {
        "saltmarsh-handbook-2024.pdf",
        "tessel-rowe-annual-report-2024.pdf",
    }
    some = ask(samples, wish(LEAVE, pages="1-3", num_results=4, mode="lexical"))
    assert {source["page"] for source in (some.fields or {})["sources"]} <= {1, 2, 3}
    with pytest.raises(NothingFoundError, match="no document has the tag"):
        search(samples, wish(LEAVE, tags=["nobody"]))


def test_a_question_that_nothing_answers_says_so(samples: Index) -> None:
    reply = ask(samples, wish("qwxz vbnmk plorf"))
    assert (reply.fields or {})["confidence"]["level"] == "none"
    assert "Nothing" in reply.text
    nothing = search(samples, wish("qwxz vbnmk plorf", mode="lexical"))
    assert nothing.text.startswith("Nothing was found.")


def test_search_ranks_pages_with_a_snippet(samples: Index) -> None:
    reply = search(samples, replace(wish(LEAVE), num_results=3))
    assert len((reply.fields or {})["results"]) == 3
    lines = reply.text.split("\n\n")[1].splitlines()
    assert lines[0].startswith(f"[1] {HANDBOOK}, page 7")
    assert "page:" in lines[0]
    assert "18 weeks" in lines[1]


def test_a_page_comes_with_its_neighbours_in_order(samples: Index) -> None:
    reply = get_page(samples, HANDBOOK, page=7, around=1)
    assert [page["page"] for page in (reply.fields or {})["pages"]] == [6, 7, 8]
    assert reply.text.index("Page 6]") < reply.text.index("Page 7]") < reply.text.index("Page 8]")
    assert [page["page"] for page in (get_page(samples, HANDBOOK, around=2).fields or {})["pages"]] == [1, 2, 3]
    ref = (reply.fields or {})["pages"][1]["ref"]
    assert (get_page(samples, ref).fields or {})["pages"] == [{"citation": 1, "ref": ref, "page": 7}]
    assert "Printed on page 7: 5." in reply.text
    with pytest.raises(NothingFoundError, match="characters, none from"):
        get_page(samples, ref, start=10**6)


def test_what_is_read_by_ocr_is_marked(samples: Index) -> None:
    letter = "footbridge-inspection-letter-scan.pdf"
    assert "Read by OCR" in get_page(samples, letter, page=1).text
    assert "Read by OCR" in ask(samples, wish("Who inspected the footbridge?", documents=[letter])).text


def test_pages_that_talk_to_a_model_are_marked_and_escaped(nasty: Index) -> None:
    for reply in (
        ask(nasty, wish("zebra forged", documents=["forged.pdf"])),
        search(nasty, wish("zebra forged", documents=["forged.pdf"])),
        get_page(nasty, "forged.pdf"),
    ):
        above = reply.text.partition("[Document 1:")[0]
        assert "Suspicious:" in above
        assert "not instructions" in above
        assert "[Document 2: bank.pdf" not in reply.text


def test_a_picture_is_as_stored_or_framed(samples: Index) -> None:
    def picture(**options: object) -> Image.Image:
        reply = page_image(samples, HANDBOOK, page=7, **options)  # type: ignore[arg-type]
        assert reply.fields is None, "clients that show fields alone would drop it"
        assert reply.picture is not None
        return Image.open(io.BytesIO(reply.picture))

    plain, framed = picture(), picture(question=LEAVE)
    assert max(plain.size) <= 1280
    assert plain.size == framed.size
    assert ImageChops.difference(plain, framed).getbbox() is not None
    assert "framed in red" in page_image(samples, HANDBOOK, page=7, question=LEAVE).text
    nothing = page_image(samples, HANDBOOK, page=7, question="qwxz vbnmk plorf").text
    assert "framed" in nothing


def test_a_page_without_a_picture_says_what_else_there_is(nasty: Index) -> None:
    with pytest.raises(NothingFoundError, match="has no picture") as caught:
        page_image(nasty, "quotes.pdf", page=1)
    assert "get_page" in caught.value.hint


def test_a_picture_is_not_read_through_a_link_or_from_what_is_none(copy_of_nasty: Index, tmp_path: Path) -> None:
    index = copy_of_nasty
    with index.catalog.short_write() as connection:
        connection.execute("UPDATE pages SET image = 1")
    place = Path(str(index.documents.page("quotes.pdf", 1).item.metadata["image_path"]))
    place.parent.mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.write_bytes(b"\xff\xd8\xff secret")
    for made in (lambda: place.symlink_to(secret), lambda: place.write_text("no picture"), place.mkdir):
        made()
        with pytest.raises(NothingFoundError, match="has no picture"):
            page_image(index, "quotes.pdf", page=1)
        place.rmdir() if place.is_dir() else place.unlink()


def test_documents_are_listed_by_name_and_tag(copy_of_nasty: Index) -> None:
    index = copy_of_nasty
    index.documents.tag("quotes.pdf", "Loud", "odd")
    every = list_documents(index, limit=3)
    assert fields(every)["total"] == 10
    assert fields(every)["next_offset"] == 3
    [line] = [line for line in list_documents(index, tags=["loud"]).text.splitlines() if "quotes.pdf" in line]
    assert line.endswith("[Loud, odd]")
    assert fields(list_documents(index, name="TITLE emoji"))["total"] == 1
    assert "No document fits" in list_documents(index, name="giraffe").text
    assert "none of them is shown" in list_documents(index, offset=50).text
    assert fields(ask(index, wish("zebra", tags=["odd"])))["sources"]


@pytest.fixture
def copy_of_nasty(tmp_path: Path) -> Iterator[Index]:
    make_nasty(tmp_path / "nasty")
    with Index(tmp_path / "nasty") as index:
        yield index


def test_an_outline_has_pages_and_depth(samples: Index, nasty: Index) -> None:
    whole, flat = outline(samples, HANDBOOK), outline(samples, HANDBOOK, depth=1)
    assert "5.3 Sick leave (page 7)" in whole.text
    assert int(str(fields(flat)["entries"])) < int(str(fields(whole)["entries"]))
    assert "It has no headings" in outline(nasty, "quotes.pdf").text


def test_a_search_that_failed_in_part_or_wholly_is_told() -> None:
    legs = [LegCoverage("dense", "failed", "/secret/path"), LegCoverage("lexical", "ok")]
    notes = coverage_notes(Coverage(legs=legs, pages=9, pages_without_vectors=4))
    assert notes == [
        "The dense search failed; this rests on the others.",
        "4 of 9 pages are searched by their words only so far.",
    ]
    with pytest.raises(CtxError, match="every way"):
        check_legs(Coverage(legs=legs[:1]))


def test_text_stands_in_one_place_and_the_other_names_it() -> None:
    reply = Reply("the text", {"truncated": False})
    assert reply.shown("content") == ("the text", {"note": IN_CONTENT, "truncated": False})
    assert reply.shown("structured") == (IN_STRUCTURED, {"text": "the text", "truncated": False})
    for client, place in {
        "claude-code": "structured",
        "claude-code/2.1.280 (cli)": "structured",
        "Visual Studio Code": "structured",
        "claude-ai": "content",
        "": "content",
    }.items():
        assert text_in_for(client) == place


def test_errors_are_told_in_the_words_of_the_tools(samples: Index) -> None:
    def told(*args: str, **options: object) -> str:
        with pytest.raises(CtxError) as caught:
            get_page(samples, *args, **options)  # type: ignore[arg-type]
        return error_text(caught.value)

    assert told("saltmarsh-handbok-2025.pdf").startswith("no document matches")
    assert "did you mean saltmarsh-handbook-2025.pdf" in told("saltmarsh-handbok-2025.pdf")
    assert "list_documents" in told("nobody.pdf")
    assert "its pages are 1 to 13" in told(HANDBOOK, page=99)
    assert "name one by its id" in told("saltmarsh")
    for text in (told("nobody.pdf"), told("saltmarsh"), error_text(_error_of(samples))):
        assert "ctx list" not in text
        assert "ctx tag" not in text


def _error_of(index: Index) -> CtxError:
    with pytest.raises(CtxError) as caught:
        ask(index, wish("x", tags=["nobody"]))
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        IndexUnusableError("cannot open /home/somebody/secret/catalog.sqlite3", hint="look at /home/somebody"),
        EncoderUnavailable("the model at /opt/models/x is gone"),
        BusyError("/home/somebody/index is written", pid=7),
        CtxError("it failed in /home/somebody/secret/file.pdf"),
        UsageError("'/home/somebody/secret' is wrong"),
        RuntimeError("boom in /home/somebody: question text"),
        ValueError("the question"),
    ],
)
def test_errors_name_no_place_and_quote_no_exception(error: Exception) -> None:
    text = error_text(error)
    assert "/home" not in text
    assert "/opt" not in text
    assert "somebody" not in text or "file.pdf" in text
    assert "question" not in text
    assert text.endswith(".")


def test_an_empty_index_says_how_to_fill_it() -> None:
    assert "tool ingest" in error_text(no_documents(can_ingest=True))
    assert "ctx ingest PATH" in error_text(no_documents(can_ingest=False))


def test_resources_are_documents_and_their_pages(samples: Index) -> None:
    found = document_resources(samples, "")
    assert len(found.resources) == 6
    assert found.next_cursor is None
    [uri] = [each.uri for each in found.resources if each.name == HANDBOOK]
    assert "5.3 Sick leave (page 7)" in resource_text(samples, uri)
    assert "18 weeks" in resource_text(samples, f"{uri}/page/7")
    with pytest.raises(UsageError, match="no cursor"):
        document_resources(samples, "x")
    for wrong in ("ctx://doc/../etc/page/1", "file:///etc/passwd", f"{uri}/page/x", "ctx://doc/0123456789abcdef"):
        with pytest.raises(NothingFoundError):
            resource_text(samples, wrong)
    with pytest.raises(NothingFoundError, match="no page 99"):
        resource_text(samples, f"{uri}/page/99")


def test_an_ingest_tells_what_became_of_it() -> None:
    bad = {"filename": "bad.pdf", "result": "failed", "reason": "it is no PDF"}
    reply = _ingest_reply({"added": 2, "copy": 1, "failed": 1, "pages": 9, "files": [bad]})
    assert reply.text.splitlines() == [
        "2 added, 1 copy, 1 failed; 9 pages read.",
        "Failed files are not in the index:",
        "- bad.pdf: it is no PDF",
    ]
    assert fields(reply)["unchanged"] == 1
    assert "Interrupted" in _ingest_reply({"interrupted": True}).text


def test_only_what_lies_below_a_root_may_be_added(tmp_path: Path) -> None:
    root, other, outside = tmp_path / "root", tmp_path / "other", tmp_path / "outside"
    for folder in (root, other, outside):
        folder.mkdir()
        (folder / "a.pdf").touch()
    (root / "way-out").symlink_to(outside)
    (root / "loop").symlink_to(root / "loop")
    (other / "b.pdf").touch()
    roots = (root, other)
    assert allowed_paths([str(root), "a.pdf", "b.pdf"], roots) == [root, root / "a.pdf", other / "b.pdf"]
    assert allowed_paths([str(other / "a.pdf")], roots) == [other / "a.pdf"]
    for wrong in (str(outside / "a.pdf"), str(outside / "none.pdf"), "../outside/a.pdf", "way-out/a.pdf", "way-out",
                  "/etc/passwd", "~nobody-there/x", "a\0b", "/", f"{root}/../outside"):  # fmt: skip
        with pytest.raises(ProblemError, match="not in a folder that may be added") as caught:
            allowed_paths([wrong], (root,))
        assert str(root) in caught.value.hint
        assert "outside" not in caught.value.hint
    with pytest.raises(NothingFoundError, match="there is no file"):
        allowed_paths(["none.pdf"], roots)
    with pytest.raises(UsageError, match="empty"):
        allowed_paths([], roots)


ASKED = "why do uploads stop and are parts sent again"


def test_what_is_ours_stands_above_what_is_quoted(everything: Index) -> None:
    reply = tasks.assemble_context(everything, AskRequest(ASKED), ENOUGH)
    notes, _, quoted = reply.text.partition("\n\n# Context\n")
    assert "quoted material" in notes
    assert "**Memory**" not in notes
    assert "## Code\n**function** `send_part`" in quoted
    assert {item["source"] for item in fields(reply)["items"]} == {
        "memory", "code", "experience", "commit", "document"
    }  # fmt: skip


def test_memories_are_those_of_whom_the_index_acts_for(everything: Index) -> None:
    asked = AskRequest("the key under the mat", types=("memories",))
    eva = everything.acting_as(Principal("eva", "eva"))
    assert "secret upload key" in tasks.assemble_context(eva, asked, ENOUGH).text
    assert "secret upload key" not in tasks.assemble_context(everything, asked, ENOUGH).text
    sources = fields(tasks.build_context_package(eva, ASKED, ENOUGH))["sources"]
    assert {source["kind"] for source in sources} == {"memory"}, "nothing but what is theirs"


def test_what_is_not_there_is_told_and_what_is_wrong_refused(tmp_path: Path, everything: Index) -> None:
    with Index(tmp_path / "none") as index:
        assert tasks.assemble_context(index, AskRequest(ASKED), ENOUGH).text.startswith("Nothing was found.")
        assert tasks.premortem(index, "debugging", ENOUGH).text.startswith("Nothing is known")
    with pytest.raises(UsageError, match="dreaming"):
        tasks.premortem(everything, "dreaming", ENOUGH)
    with pytest.raises(InvalidContextTypeError):
        tasks.assemble_context(everything, AskRequest(ASKED, types=("dreams",)), ENOUGH)
    reply = tasks.build_context_package(everything, ASKED, ENOUGH, pinned=["memory:none"], types=["memories"])
    assert "Pinned memory:none is not in it: unknown." in reply.text
    with pytest.raises(CtxError):
        tasks.build_context_package(everything, ASKED, ENOUGH, pinned=["no ref"])
