"""The documents view in a real browser: lists, outlines, uploads, and a document that means harm."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest
from playwright.sync_api import Page, expect

from ingest import Observer, ingest
from research.index import Index
from research.settings import Settings
from research.store import IndexPaths
from tests.conftest import write_pdf
from tests.research.service.web.browsing import HANDBOOK
from tests.research.service.web.conftest import Visiting

pytestmark = pytest.mark.slow

_PICTURE = "<img src=x onerror=\"document.title='run'; alert(1)\">"
_SCRIPT = "<script>document.title='run'; alert(2)</script>"


def documents(page: Page) -> Page:
    page.wait_for_selector(".document")
    return page


def test_documents_are_listed_searched_and_opened(visiting: Visiting, own_index: Path) -> None:
    with Index.open(own_index) as index:
        index.documents.tag(HANDBOOK, "current")
    visitor = visiting()
    page = documents(visitor.open("/#documents"))
    expect(page.locator("#documents-count")).to_contain_text("documents")
    page.fill("#find", "staff handbook")
    expect(page.locator(".document h2")).to_have_text(["Staff Handbook 2024", "Staff Handbook 2025"])
    page.locator("#tags button").click()
    expect(page.locator(".document h2")).to_have_text(["Staff Handbook 2025"])
    expect(page.locator("#tags button")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#tags button")).to_be_focused()
    page.get_by_role("button", name="Outline").click()
    page.get_by_role("link", name="5.4 Family leave").click()
    expect(page.locator("#viewer-title")).to_contain_text(f"{HANDBOOK} page 7")
    expect(page.locator(".sheet .box")).to_have_count(0)  # nothing was asked
    page.keyboard.press("Escape")
    expect(page.locator(".outline")).to_be_visible()
    page.get_by_role("button", name="Ask this document").click()
    expect(page.locator("#doc-entries .entry")).to_have_text(HANDBOOK)
    visitor.ask("How long is parental leave?")
    assert set(page.locator(".source-name").all_inner_texts()) == {HANDBOOK}


def test_files_that_are_chosen_can_be_asked_soon(visiting: Visiting, tmp_path: Path) -> None:
    otters = write_pdf(tmp_path / "otters.pdf", ["Forty-one otters live along the river Tamber."])
    none = tmp_path / "none.pdf"
    none.write_bytes(b"nothing of the kind")
    visitor = visiting()
    page = documents(visitor.open("/#documents"))
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add PDFs").click()
    chooser.value.set_files([otters, none])
    expect(page.locator(".job", has_text="none.pdf")).to_contain_text("This is no PDF, and was not added")
    job = page.locator(".job", has_text="otters.pdf")
    expect(job.locator("progress")).to_be_visible()
    expect(job).to_have_attribute("data-state", "done", timeout=60_000)
    expect(job).to_contain_text("it can be asked now")
    expect(page.locator(".document", has_text="otters.pdf")).to_be_visible()
    page.locator("#to-ask").click()
    visitor.ask("How many otters live along the Tamber?")
    expect(page.locator("blockquote").first).to_contain_text("Forty-one otters")


def test_files_that_are_dropped_anywhere_are_added(visiting: Visiting, tmp_path: Path) -> None:
    herons = write_pdf(tmp_path / "herons.pdf", ["Nineteen herons nest in the old quarry."])
    visitor = visiting()
    page = visitor.open("/")
    expect(page.locator("#version")).not_to_be_empty()
    browser = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(herons)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver"):
        browser.send("Input.dispatchDragEvent", {"type": kind, "x": 300, "y": 400, "data": data})
    expect(page.locator("#drop")).to_be_visible()
    browser.send("Input.dispatchDragEvent", {"type": "drop", "x": 300, "y": 400, "data": data})
    expect(page.locator("#drop")).to_be_hidden()
    expect(page.locator(".job", has_text="herons.pdf")).to_have_attribute("data-state", "done", timeout=60_000)
    expect(page).to_have_url(f"{visitor.server.url}/#documents")
    visitor.open("/?q=How+many+herons+nest+in+the+quarry")
    expect(page.locator("blockquote").first).to_contain_text("Nineteen herons")


def test_a_hostile_document_is_shown_as_text(visiting: Visiting, own_index: Path, tmp_path: Path) -> None:
    """Its text, its title and its name hold HTML and scripts; nothing of it runs anywhere."""
    name = "<img src=x onerror=alert(3)>.pdf"
    with pymupdf.open() as document:
        for _ in range(2):
            lines = f"The zeppelin flies at noon. {_PICTURE} {_SCRIPT}"
            document.new_page().insert_textbox(pymupdf.Rect(72, 72, 520, 760), lines, fontsize=11)
        document.set_metadata({"title": f"Zeppelins {_PICTURE}"})
        document.save(tmp_path / name)
    summary = ingest(IndexPaths(own_index), [tmp_path / name], settings=Settings(), observer=Observer())
    assert not summary.failed
    visitor = visiting()
    page = documents(visitor.open("/#documents"))
    row = page.locator(".document", has_text="Zeppelins")
    expect(row).to_contain_text("<img src=x onerror=")
    row.get_by_role("button", name="Outline").click()
    expect(row.locator(".outline")).to_contain_text("<img src=x onerror=")
    page.locator("#to-ask").click()
    visitor.ask("When does the zeppelin fly?")
    expect(page.locator("blockquote").first).to_contain_text("<img src=x onerror=")
    expect(page.locator(".source").first).to_contain_text("<script>")
    page.locator(".source-name").first.click()
    expect(page.locator(".text-pane")).to_contain_text("<script>")
    expect(page.locator("#viewer-title")).to_contain_text("<img src=x onerror=alert(3)>.pdf")
    page.keyboard.press("Escape")
    question = f"{_PICTURE} {_SCRIPT} zeppelin"
    visitor.ask(question)
    page.locator("#show-recent").click()
    expect(page.locator("#recent li").first).to_contain_text("<script>")
    assert page.title() == f"{question[:120]} · ctx", "no script has set another one"
    assert page.locator("img[src='x']").count() == 0
    assert page.locator("body script").count() == 0
    page.goto(f"{visitor.server.url}/ask?q=When+does+the+zeppelin+fly%3F")  # and the page without scripts
    expect(page.locator("blockquote").first).to_contain_text("<img src=x onerror=")
    assert page.locator("img[src='x']").count() == 0
    assert page.locator("main script").count() == 0
    assert page.title() == "When does the zeppelin fly?"
