"""The quick witness of the web page in a real browser: a question, its quote, its source, and the box on the page."""

from __future__ import annotations

import pymupdf
from playwright.sync_api import Page, expect

from tests.conftest import SAMPLES
from tests.research.service.web.browsing import ANSWER, ANSWER_PAGE, HANDBOOK, QUESTION, wait_for_picture
from tests.research.service.web.conftest import Visiting


def place_of_answer() -> tuple[float, float, float, float]:
    """Where the answer stands, as parts of its page, by the PDF itself."""
    with pymupdf.open(SAMPLES / HANDBOOK) as document:
        page = document[ANSWER_PAGE - 1]
        found = page.search_for("The parent who gives birth")[0] | page.search_for("has 18 weeks of leave")[0]
        return (
            found.x0 / page.rect.width,
            found.y0 / page.rect.height,
            found.x1 / page.rect.width,
            found.y1 / page.rect.height,
        )


def place_of_box(page: Page) -> tuple[float, float, float, float]:
    """Where the first box is drawn, as parts of the picture as it is on the screen."""
    sheet, box = page.locator(".sheet img").bounding_box(), page.locator(".sheet .box").first.bounding_box()
    assert sheet
    assert box
    left, top = (box["x"] - sheet["x"]) / sheet["width"], (box["y"] - sheet["y"]) / sheet["height"]
    return left, top, left + box["width"] / sheet["width"], top + box["height"] / sheet["height"]


def test_a_question_is_answered_and_the_page_shows_where(visiting: Visiting) -> None:
    visitor = visiting()
    page = visitor.open("/")
    expect(page.locator("#scope")).to_contain_text("6 documents, 48 pages")
    expect(page.locator("#q")).to_be_focused()
    visitor.ask()
    expect(page.locator("#answer h2.level")).to_have_text("The answer is very likely on these pages")
    expect(page.locator("blockquote").first).to_contain_text(ANSWER)
    assert "parent" in page.locator("blockquote mark").all_inner_texts()
    expect(page.locator("#said")).to_contain_text("The answer is very likely on these pages. 3 quotes, 10 sources.")
    address, _, turn = page.url.partition("&session=")
    assert address == visitor.server.asking().replace("%20", "+")
    assert turn.endswith("&turn=1"), "it began a conversation"
    assert page.title() == f"{QUESTION} · ctx"

    page.locator("figcaption .cite").first.click()  # jumps to the source
    card = page.locator("#source-1")
    expect(card).to_be_focused()
    expect(card).to_be_in_viewport()
    expect(card.locator("h3")).to_contain_text(f"{HANDBOOK}page {ANSWER_PAGE} (printed 5)")
    assert card.locator("mark").count() > 3
    assert card.locator(".thumbnail img").evaluate("image => image.decode().then(() => image.naturalWidth)") > 100

    card.locator(".source-name").click()
    wait_for_picture(page)
    expect(page.locator("#viewer-title")).to_contain_text(f"{HANDBOOK} page {ANSWER_PAGE} (printed 5)")
    left, top, right, bottom = place_of_box(page)
    x0, y0, x1, y1 = place_of_answer()
    assert left <= x0 + 0.005 <= x1 - 0.005 <= right, "the box covers the answer"
    assert top <= y0 + 0.005 <= y1 - 0.005 <= bottom
    assert bottom - top < 0.12, "and not half of the page"
    expect(page.locator(".sheet .box").first).to_be_in_viewport()
    expect(page.locator(".text-pane .fits").first).to_contain_text(ANSWER)
    href = page.locator(".viewer-tools a").get_attribute("href")
    assert href
    assert href.endswith(f"/file#page={ANSWER_PAGE}")
