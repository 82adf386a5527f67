"""Tools as plain functions: what they say, what they take, and what is said when they cannot."""

from __future__ import annotations

import inspect
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from research.errors import (
    BusyError,
    CtxError,
    EncoderUnavailable,
    IndexUnusableError,
    NothingFoundError,
    UsageError,
)
from research.index import Index
from research.models import Coverage, LegCoverage
from research.parameters import Parameter, read_values
from research.request import AskRequest, read_request
from research.service.mcp import catalogue
from research.service.mcp.budget import IN_CONTENT, IN_STRUCTURED, Reply, shown
from research.service.mcp.clients import product_of, text_in_for
from research.service.mcp.faults import Words
from research.service.mcp.ingesting import Ingest, IngestDoor, allowed_paths, ingest_reply
from research.service.mcp.listing import list_documents, outline
from research.service.mcp.reading import get_page, page_image
from research.service.mcp.resources import document_entries, resource_text
from research.service.mcp.tools import ask, check_legs, coverage_notes, search
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


def fields(reply: Reply) -> dict[str, object]:
    assert reply.fields is not None
    return dict(reply.fields)


def test_ask_quotes_and_cites(samples: Index) -> None:
    reply = ask(samples, wish(LEAVE))
    assert "18 weeks" in reply.text
    assert f"[Document 1: {HANDBOOK}, Page 7]" in reply.text
    [first, *_] = reply.fields["sources"] if reply.fields else []
    assert (first["citation"], first["filename"], first["page"]) == (1, HANDBOOK, 7)
    assert first["ref"] in reply.text.partition("[Document 1")[0], "refs stand above what is quoted"
    assert samples.documents.page(first["ref"]).item.ref.part == "7"


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
        assert reply.picture.mime_type == "image/jpeg"
        return Image.open(io.BytesIO(reply.picture.data))

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
    assert shown(reply, "content").text == "the text"
    assert shown(reply, "content").structured == {"note": IN_CONTENT, "truncated": False}
    assert shown(reply, "structured").text == IN_STRUCTURED
    assert shown(reply, "structured").structured == {"text": "the text", "truncated": False}


@pytest.mark.parametrize(
    ("client", "place"),
    [("claude-code", "structured"), ("Visual Studio Code", "structured"), ("claude-ai", "content"), ("", "content")],
)
def test_clients_get_the_text_where_they_show_it(client: str, place: str) -> None:
    assert text_in_for(client) == place
    assert product_of("claude-code/2.1.280 (cli)") == "claude-code"


def test_every_tool_takes_what_its_function_takes() -> None:
    for tool in catalogue.READING:
        assert tool.run is not None
        signature = list(inspect.signature(tool.run).parameters.values())[1:]
        signature = [each for each in signature if each.name != "tenant"]  # which no agent names
        own = [each for each in tool.parameters if not each.field]
        assert {each.name for each in signature} - {"request"} == {each.name for each in own}, tool.name
        assert ("request" in {each.name for each in signature}) == bool(tool.door)
        for parameter in own:
            given = next(each for each in signature if each.name == parameter.name)
            if parameter.name != "text_in":
                default = None if given.default is inspect.Parameter.empty else given.default
                assert default == parameter.default, f"{tool.name}.{parameter.name}"


def test_arguments_are_taken_for_what_they_can_only_mean() -> None:
    parameters = [
        Parameter("n", "integer", "A number. More.", default=3, least=1, most=9),
        Parameter("names", "texts", "Names.", default=(), most=10),
        Parameter("on", "boolean", "Whether."),
        Parameter("how", "text", "How.", choices=("a", "b")),
    ]
    assert read_values(parameters, {}) == {"n": 3, "names": (), "on": None, "how": None}
    assert read_values(parameters, {"n": "7", "names": "x", "on": "true", "how": None})["n"] == 7
    assert read_values(parameters, {"n": 7.0, "names": ["x", " y "], "on": False}) == {
        "n": 7,
        "names": ("x", "y"),
        "on": False,
        "how": None,
    }
    assert read_values(parameters, {"names": "\ud83d"})["names"] == ("\ufffd",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": 0}, "too small"),
        ({"n": 10}, "too large"),
        ({"n": True}, "a whole number, not true"),
        ({"n": "many"}, "a whole number"),
        ({"n": 1.5}, "a whole number"),
        ({"names": 3}, "a list of texts"),
        ({"names": [3]}, "a list of texts, not 3"),
        ({"names": ["x"] * 1001}, "a list of texts"),
        ({"names": [" "]}, "is empty"),
        ({"names": ["x" * 11]}, "11 characters"),
        ({"on": "perhaps"}, "true or false"),
        ({"how": "c"}, "cannot be 'c'"),
        ({"how": {"a": "b" * 1000}}, "a text, not"),
        ({"N": 1}, "there is no 'N' here"),
        ({"needed": None}, "needed is missing"),
    ],
)
def test_wrong_arguments_say_what_would_be_right(arguments: dict[str, object], words: str) -> None:
    parameters = [
        Parameter("n", "integer", "A number.", least=1, most=9),
        Parameter("names", "texts", "Names.", most=10),
        Parameter("on", "boolean", "Whether."),
        Parameter("how", "text", "How.", choices=("a", "b")),
    ]
    if "needed" in arguments:
        parameters.append(Parameter("needed", "text", "What is needed.", required=True))
    with pytest.raises(UsageError, match=words) as caught:
        read_values(parameters, arguments)
    assert caught.value.hint
    assert len(caught.value.message) < 200


def test_errors_are_told_in_the_words_of_the_tools(samples: Index) -> None:
    def told(*args: str, **options: object) -> str:
        with pytest.raises(CtxError) as caught:
            get_page(samples, *args, **options)  # type: ignore[arg-type]
        return Words().told(caught.value)

    assert told("saltmarsh-handbok-2025.pdf").startswith("no document matches")
    assert "did you mean saltmarsh-handbook-2025.pdf" in told("saltmarsh-handbok-2025.pdf")
    assert "list_documents" in told("nobody.pdf")
    assert "its pages are 1 to 13" in told(HANDBOOK, page=99)
    assert "name one by its id" in told("saltmarsh")
    for text in (told("nobody.pdf"), told("saltmarsh"), Words().told(_error_of(samples))):
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
    text = Words().told(error)
    assert "/home" not in text
    assert "/opt" not in text
    assert "somebody" not in text or "file.pdf" in text
    assert "question" not in text
    assert text.endswith(".")


def test_an_empty_index_says_how_to_fill_it() -> None:
    assert "tool ingest" in Words(can_ingest=True).told(Words(can_ingest=True).empty())
    assert "ctx ingest PATH" in Words().told(Words().empty())


def test_resources_are_documents_and_their_pages(samples: Index) -> None:
    entries, following = document_entries(samples, "")
    assert len(entries) == 6
    assert following == ""
    [uri] = [entry.uri for entry in entries if entry.name == HANDBOOK]
    assert "5.3 Sick leave (page 7)" in resource_text(samples, uri)
    assert "18 weeks" in resource_text(samples, f"{uri}/page/7")
    with pytest.raises(UsageError, match="no cursor"):
        document_entries(samples, "x")
    for wrong in ("ctx://doc/../etc/page/1", "file:///etc/passwd", f"{uri}/page/x", "ctx://doc/0123456789abcdef"):
        with pytest.raises(NothingFoundError):
            resource_text(samples, wrong)
    with pytest.raises(NothingFoundError, match="no page 99"):
        resource_text(samples, f"{uri}/page/99")


class _Job:
    """Starts a process that says what a test makes it say."""

    def __init__(self, *lines: str, then: str = "") -> None:
        self.program = f"import sys, time\nfor line in {lines!r}: print(line, flush=True)\n{then}"
        self.paths: Sequence[Path] = ()

    def __call__(self, paths: Sequence[Path]) -> subprocess.Popen[bytes]:
        self.paths = paths
        return subprocess.Popen([sys.executable, "-c", self.program], stdout=subprocess.PIPE)


PROGRESS = '{"event": "progress", "stage": "read", "done": 1, "total": 3, "file": "a\\nb.pdf", "page": 2, "pages": 9}'


def test_an_ingest_tells_how_far_it_is_and_what_became_of_it(tmp_path: Path) -> None:
    done = '{"event": "done", "summary": {"added": 2, "copy": 1, "failed": 1, "pages": 9, "files": [{"filename":' \
        ' "bad.pdf", "result": "failed", "reason": "it is no PDF"}]}}'  # fmt: skip
    job = _Job(PROGRESS, "no json", '{"event": "note", "message": "x"}', done)
    said: list[str] = []
    summary = Ingest(IngestDoor(job, (tmp_path,)), [tmp_path]).run(said.append)
    assert said == ["reading, 1 of 3: a\\nb.pdf, page 2 of 9"]
    reply = ingest_reply(summary)
    assert reply.text.splitlines() == [
        "2 added, 1 copy, 1 failed; 9 pages read.",
        "Failed files are not in the index:",
        "- bad.pdf: it is no PDF",
    ]
    assert (reply.fields or {})["unchanged"] == 1


NO_PDFS = '{"event": "failed", "error": "no PDFs", "hint": "", "kind": "NothingFoundError"}'
ODD = '{"event": "failed", "error": "odd", "hint": "", "kind": "internal"}'


@pytest.mark.parametrize(
    ("job", "kind", "words"),
    [
        (_Job(NO_PDFS), NothingFoundError, "no PDFs"),
        (_Job(ODD), CtxError, "odd"),
        (_Job(), CtxError, "without a word"),
    ],
)
def test_an_ingest_that_fails_says_why(job: _Job, kind: type[CtxError], words: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=words):
        Ingest(IngestDoor(job, (tmp_path,)), [tmp_path]).run(lambda _: None)


def test_an_ingest_is_stopped_from_another_thread(tmp_path: Path) -> None:
    begun = threading.Event()
    ingest = Ingest(IngestDoor(_Job(PROGRESS, then="time.sleep(60)"), (tmp_path,)), [tmp_path])
    result: list[object] = []
    thread = threading.Thread(target=lambda: result.append(ingest.run(lambda _: begun.set())))
    thread.start()
    assert begun.wait(30)
    assert not ingest.over
    ingest.stop()
    thread.join(30)
    assert result == [{"interrupted": True}]
    assert ingest.over
    assert "Interrupted" in ingest_reply({"interrupted": True}).text
    never = Ingest(IngestDoor(_Job(), (tmp_path,)), [tmp_path])
    never.stop()
    assert never.over
    assert never.run(lambda _: None) == {"interrupted": True}


def test_only_what_lies_below_a_root_may_be_added(tmp_path: Path) -> None:
    root, other, outside = tmp_path / "root", tmp_path / "other", tmp_path / "outside"
    for folder in (root, other, outside):
        folder.mkdir()
        (folder / "a.pdf").touch()
    (root / "way-out").symlink_to(outside)
    (root / "loop").symlink_to(root / "loop")
    (other / "b.pdf").touch()
    door = IngestDoor(_Job(), (root, other))
    assert allowed_paths([str(root), "a.pdf", "b.pdf"], door) == [root, root / "a.pdf", other / "b.pdf"]
    assert allowed_paths([str(other / "a.pdf")], door) == [other / "a.pdf"]
    for wrong in (str(outside / "a.pdf"), str(outside / "none.pdf"), "../outside/a.pdf", "way-out/a.pdf", "way-out",
                  "/etc/passwd", "~nobody-there/x", "a\0b", "/", f"{root}/../outside"):  # fmt: skip
        with pytest.raises(UsageError, match="not in a folder that may be added") as caught:
            allowed_paths([wrong], IngestDoor(_Job(), (root,)))
        assert str(root) in caught.value.hint
        assert "outside" not in caught.value.hint
    with pytest.raises(NothingFoundError, match="there is no file"):
        allowed_paths(["none.pdf"], door)
    with pytest.raises(UsageError, match="empty"):
        allowed_paths([], door)
    assert os.fspath(root) in door.words
