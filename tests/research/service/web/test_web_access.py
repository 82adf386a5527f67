"""The web page in a real browser: who gets in and how, what is left without JavaScript, and who else can use it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.research.service.web.browsing import ANSWER, HANDBOOK, QUESTION, ROOT, Served, served, visit
from tests.research.service.web.conftest import Visiting

pytestmark = pytest.mark.slow

_AXE = ROOT / "tests" / "vendor" / "axe-core" / "axe.min.js"


def test_the_link_opens_the_page_once(browser: Browser, server: Served) -> None:
    first = visit(browser, server, signed_in=False)
    page = first.open(f"/#{urlsplit(server.link).fragment}")
    expect(page.locator("#scope")).to_contain_text("48 pages")
    assert page.url == f"{server.url}/", "the token is out of the address bar"
    page.go_back()  # and out of the history
    assert "token" not in page.url
    [cookie] = first.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    first.close()

    second = visit(browser, server, signed_in=False)
    page = second.open(f"/#{urlsplit(server.link).fragment}")
    expect(page.locator("#login-problem")).to_contain_text("The token is not accepted")
    expect(page.locator("#ask-view")).to_be_hidden()
    assert "token" not in page.url
    page.fill("#token", "wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#login-problem")).to_contain_text("each works once")
    page.fill("#token", server.token)
    page.keyboard.press("Enter")
    expect(page.locator("#q")).to_be_focused()
    expect(page.locator("#scope")).to_contain_text("48 pages")
    second.close(allowed=((401, "/api/login"), (401, "/api/status")))


def test_a_session_that_is_over_asks_again_and_keeps_the_question(visiting: Visiting) -> None:
    visitor = visiting()
    page = visitor.open("/")
    page.wait_for_load_state("networkidle")
    page.context.clear_cookies()
    page.fill("#q", QUESTION)
    page.press("#q", "Enter")
    expect(page.locator("#token")).to_be_focused()
    assert page.locator("#answer").inner_text() == ""
    page.fill("#token", visitor.server.token)
    page.keyboard.press("Enter")
    expect(page.locator("blockquote").first).to_contain_text(ANSWER)
    expect(page.locator("#q")).to_have_value(QUESTION)
    page.locator("#sign-out").click()
    expect(page.locator("#login-view")).to_be_visible()
    expect(page.locator("#views")).to_be_hidden()
    assert page.context.cookies() == []
    assert {status for status, _ in visitor.watch.statuses} == {401}
    visitor.watch.statuses.clear()


def test_a_server_that_is_gone_is_told_and_tried_again(browser: Browser, own_index: Path) -> None:
    with served(own_index) as server:
        visitor = visit(browser, server)
        page = visitor.open("/")
        expect(page.locator("#version")).not_to_be_empty()
    page.fill("#q", QUESTION)
    page.press("#q", "Enter")
    expect(page.locator(".problem")).to_contain_text("The server does not answer")
    port = urlsplit(server.url).port or 0
    with served(own_index, port=port):
        page.get_by_role("button", name="Try again").click()
        page.fill("#token", server.token)  # its sessions have ended with it; the token of the file has not
        page.keyboard.press("Enter")
        expect(page.locator("blockquote").first).to_contain_text(ANSWER)
        page.context.close()
    assert [error for error in visitor.watch.errors if "ERR_CONNECTION_REFUSED" not in error] == []


def test_without_javascript_a_question_has_its_answer(visiting: Visiting) -> None:
    visitor = visiting(signed_in=False, java_script_enabled=False, reduced_motion="reduce")
    page = visitor.open("/ask?q=leave")
    expect(page.locator(".problem")).to_contain_text("Please sign in")
    visitor.watch.statuses.clear()
    visitor.open("/")
    page.fill("#plain-token", visitor.server.token)
    page.press("#plain-token", "Enter")
    assert page.url == f"{visitor.server.url}/"
    page.fill("#q", QUESTION)
    page.locator("#ask button.primary").click()
    expect(page.locator("blockquote").first).to_contain_text(ANSWER)
    assert "parent" in page.locator("blockquote mark").all_inner_texts()
    page.locator("figcaption .cite").first.click()
    card = page.locator("#source-1")
    expect(card).to_be_in_viewport()
    expect(card).to_contain_text(f"{HANDBOOK} page 7 (printed 5)")
    box, sheet = card.locator("rect").first.bounding_box(), card.locator("img").bounding_box()
    assert box
    assert sheet
    assert 0.68 < (box["y"] - sheet["y"]) / sheet["height"] < 0.72, "where the answer stands"
    large = card.locator(".thumbnail").get_attribute("href")
    assert page.context.request.get(f"{visitor.server.url}{large}").headers["content-type"] == "image/jpeg"
    visitor.open("/ask?q=leave&pages=ninety&since=&until=")
    expect(page.locator(".problem")).to_contain_text("pages count from 1")
    assert visitor.watch.statuses == [(422, "/ask")]
    visitor.watch.statuses.clear()


def test_the_interface_is_shown_from_local_files(visiting: Visiting) -> None:
    visitor = visiting(signed_in=False)
    page = visitor.open("/docs")
    expect(page.locator(".swagger-ui .opblock-summary-path", has_text="/api/research/ask")).to_be_visible()
    assert page.title() == "ctx for programs"


def violations(page: Page) -> list[str]:
    """What axe-core finds that keeps somebody from using the page."""
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def test_nobody_is_kept_out_by_how_it_is_made(visiting: Visiting) -> None:
    """axe-core on every view, in light and dark. The script comes through the debugger: the policy forbids it."""
    visitor = visiting(reduced_motion="reduce")
    page = visitor.open("/")
    views = {
        "start": lambda: page.wait_for_selector("#version:not(:empty)"),
        "filters": lambda: page.locator("#filters > summary").click(),
        "answer": visitor.ask,
        "opened page": lambda: (page.keyboard.press("1"), page.wait_for_selector(".sheet .box")),
        "documents": lambda: (page.keyboard.press("Escape"), page.locator("#to-documents").click()),
        "outline": lambda: (
            page.get_by_role("button", name="Outline").nth(3).click(),
            page.wait_for_selector(".outline li"),
        ),
        "keys": lambda: page.keyboard.press("?"),
        "login": lambda: (page.keyboard.press("Escape"), page.locator("#sign-out").click()),
    }
    page.evaluate(_AXE.read_text(encoding="utf-8"))
    for name, show in views.items():
        show()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert violations(page) == [], f"{name}, {scheme}"
    visitor.watch.statuses.clear()
