"""The web page in a real browser: keys, addresses, filters, sizes, colours, a model's answer, the text of pages."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from research.index import Index
from research.markdown import BULLET, Block, blocks
from tests.loopback import Call, Serving
from tests.research.service.web.browsing import ANSWER, HANDBOOK, QUESTION, served, visit, wait_for_picture
from tests.research.service.web.conftest import Visiting

pytestmark = pytest.mark.slow


def test_the_keyboard_alone_from_load_to_an_opened_page(visiting: Visiting) -> None:
    visitor = visiting()
    page = visitor.open("/#documents")
    press = page.keyboard.press
    page.wait_for_selector(".document")
    press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    press("Enter")
    expect(page.locator("main")).to_be_focused()
    press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type(QUESTION)
    press("Enter")
    page.wait_for_selector("#answer[aria-busy='false'] .source")
    for _ in range(40):
        press("Tab")
        if page.evaluate("document.activeElement.className") == "source-name":
            break
    first = page.locator(".source-name").first
    expect(first).to_be_focused()
    outline = first.evaluate("link => getComputedStyle(link).outlineStyle + getComputedStyle(link).outlineWidth")
    assert outline == "solid2px", "one sees where one is"
    press("Enter")
    wait_for_picture(page)
    expect(page.locator(".sheet-pane")).to_be_focused()
    press("ArrowRight")
    expect(page.locator("#viewer-title")).to_contain_text("page 8")
    press("ArrowLeft")
    press("ArrowLeft")
    expect(page.locator("#viewer-title")).to_contain_text("page 6")
    width = page.locator(".sheet").bounding_box()["width"]  # type: ignore[index]
    press("+")
    press("+")
    assert page.locator(".sheet").bounding_box()["width"] > 1.5 * width  # type: ignore[index]
    press("0")
    press("t")
    expect(page.locator(".text-pane")).to_be_hidden()
    for _ in range(12):  # Tab stays inside
        press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('#viewer')")
    press("Escape")
    expect(page.locator("#viewer")).to_be_hidden()
    expect(first).to_be_focused()


def test_keys_for_sources_and_the_list_of_keys(visiting: Visiting) -> None:
    visitor = visiting()
    page = visitor.open("/")
    press = page.keyboard.press
    visitor.ask()
    press("2")
    wait_for_picture(page)
    expect(page.locator("#viewer-title")).to_contain_text("saltmarsh-handbook-2024.pdf")
    press("1")
    expect(page.locator("#viewer-title")).to_contain_text(HANDBOOK)
    press("Escape")
    expect(page.locator("#viewer")).to_be_hidden()
    press("?")
    expect(page.locator("#keys")).to_be_visible()
    press("Escape")
    expect(page.locator("#keys")).to_be_hidden()


def test_the_address_holds_what_is_shown(visiting: Visiting) -> None:
    visitor = visiting()
    page = visitor.open("/")
    visitor.ask()
    visitor.ask("How warm should it be at night for lettuce?")
    page.locator(".source-name").first.click()
    wait_for_picture(page)
    address = page.url
    assert "#page=" in address
    page.reload()
    wait_for_picture(page)
    page.keyboard.press("Escape")  # nothing lies behind it: the page it was opened from was loaded anew
    expect(page.locator("#viewer")).to_be_hidden()
    expect(page.locator("#q")).to_have_value("How warm should it be at night for lettuce?")
    page.goto(visitor.server.asking())
    page.wait_for_selector(".source")
    page.locator(".source-name").nth(1).click()
    wait_for_picture(page)
    page.go_back()
    expect(page.locator("#viewer")).to_be_hidden()
    expect(page.locator("#q")).to_have_value(QUESTION)
    page.go_forward()
    expect(page.locator("#viewer")).to_be_visible()
    page.go_back()
    page.locator("#home").click()
    expect(page.locator("h1:visible")).to_have_text("Ask your documents")
    page.go_back()
    expect(page.locator("blockquote").first).to_contain_text(ANSWER)


def test_a_conversation_goes_on_and_each_answer_has_its_address(visiting: Visiting) -> None:
    visitor = visiting(size=(390, 780))
    page = visitor.open("/")
    begun, follow = "What was the order intake of Weighing Systems?", "Who leads it?"
    visitor.ask(begun)
    expect(page.locator("#conversation")).to_be_visible()
    address = page.url
    assert address.endswith("&turn=1")
    visitor.ask(follow)
    turns, note = page.locator("#turns li"), page.locator(".notes")
    for _ in range(2):
        expect(note).to_contain_text(f"it was searched for: {follow} Weighing Systems")
        expect(turns).to_have_count(2)
        page.reload()
    expect(page.locator("#turns [aria-current]")).to_have_text(follow)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.locator("#turns a").first.click()
    expect(page.locator("#q")).to_have_value(begun)
    expect(page.locator("#turns [aria-current]")).to_have_text(begun)
    assert page.url == address
    page.go_back()
    expect(page.locator("#turns [aria-current]")).to_have_text(follow)
    expect(turns).to_have_count(2)  # what is looked at again is not asked again
    page.locator("#answer").focus()
    page.keyboard.press("n")
    expect(page.locator("#conversation")).to_be_hidden()
    expect(page.locator("#q")).to_be_focused()
    visitor.ask(follow)
    expect(page.locator("#conversation")).to_be_visible()
    expect(turns).to_have_count(0)
    expect(page.locator(".notes", has_text="Weighing Systems")).to_have_count(0)


def test_questions_are_remembered_until_they_are_cleared(visiting: Visiting) -> None:
    visitor = visiting()
    page = visitor.open("/")
    for question in ("What is new?", "When is the yard open?"):
        visitor.ask(question)
    page.locator("#home").click()
    expect(page.locator("#latest li")).to_have_text(["When is the yard open?", "What is new?"])
    page.locator("#q").press("ArrowUp")
    expect(page.locator("#q")).to_have_value("When is the yard open?")
    page.locator("#q").press("ArrowUp")
    expect(page.locator("#q")).to_have_value("What is new?")
    page.locator("#q").press("ArrowDown")
    expect(page.locator("#q")).to_have_value("When is the yard open?")
    page.reload()
    page.locator("#show-recent").click()
    expect(page.locator("#recent li")).to_have_text(["When is the yard open?", "What is new?"])
    page.get_by_text("Clear the history").click()
    page.locator("#show-recent").click()
    expect(page.locator("#recent")).to_contain_text("kept here, in this browser only")
    assert page.evaluate("localStorage.getItem('ctx.history')") == "[]"


def test_filters_restrict_a_question(visiting: Visiting) -> None:
    visitor = visiting()
    page = visitor.open("/")
    page.locator("#filters > summary").click()
    page.fill("#doc", "saltmarsh-handbook-2024.pdf")
    page.press("#doc", "Enter")
    page.fill("#pages", "6-8")
    page.fill("#sources", "2")
    visitor.ask()
    assert set(page.locator(".source-name").all_inner_texts()) == {"saltmarsh-handbook-2024.pdf"}
    assert page.locator(".source").count() <= 2
    expect(page.locator("#filters-set")).to_have_text("saltmarsh-handbook-2024.pdf · pages 6-8 · 2 sources at most")
    assert "doc=saltmarsh-handbook-2024.pdf&pages=6-8&sources=2" in page.url
    page.reload()
    page.locator("#filters > summary").click()
    expect(page.locator("#doc-entries .entry")).to_have_text("saltmarsh-handbook-2024.pdf")
    page.fill("#pages", "ninety")
    page.press("#q", "Enter")
    expect(page.locator(".problem")).to_contain_text("pages count from 1")
    page.locator("#clear-filters").click()
    visitor.ask()
    assert "doc=" not in page.url
    visitor.watch.statuses.clear()  # the one that says what is wrong with the pages


def test_where_nothing_fits_it_says_so(visiting: Visiting) -> None:
    visitor = visiting()
    page = visitor.open("/?q=quantum+chromodynamics+of+penguins")
    expect(page.locator("#answer h2.level")).to_have_text("Nothing seems to answer this")
    expect(page.locator("#answer")).to_contain_text("48 pages searched; these are the nearest.")
    expect(page.locator("blockquote")).to_have_count(0)


@pytest.mark.parametrize("size", [(360, 740), (768, 1024)])
def test_a_narrow_screen_never_scrolls_sideways(visiting: Visiting, size: tuple[int, int]) -> None:
    visitor = visiting(size=size)

    def check(what: str) -> None:
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, what

    page = visitor.open("/")
    check("start")
    page.locator("#filters > summary").click()
    check("filters")
    visitor.ask("What did a shipwright earn per hour at Saltmarsh in 2024?")
    check("answer")
    page.locator(".source .thumbnail").first.click()
    wait_for_picture(page)
    check("page")
    inside = page.evaluate("document.querySelector('#viewer').scrollWidth <= innerWidth")
    assert inside
    for button in page.locator(".viewer-tools button:visible").all():
        expect(button).to_be_in_viewport()
    page.keyboard.press("t")
    expect(page.locator(".text-pane")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("#to-documents").click()
    page.locator(".document [aria-expanded]").nth(4).click()
    page.wait_for_selector(".outline li")
    check("documents")


def test_light_and_dark_by_the_system_and_by_the_switch(visiting: Visiting) -> None:
    visitor = visiting(color_scheme="dark")
    page = visitor.open("/")

    def ground() -> int:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return int(colour.removeprefix("rgb(").split(",")[0])

    assert ground() < 60
    page.locator("#theme").click()
    assert ground() > 200
    page.reload()
    assert ground() > 200, "the choice is kept"
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.evaluate("localStorage.clear()")
    page.reload()
    assert ground() > 200


def test_an_answer_that_a_model_writes_is_checked_before_the_eyes(
    browser: Browser, own_index: Path, serving: Serving
) -> None:
    def write(call: Call) -> None:
        if call.path.endswith("/models"):
            call.answer(json.dumps({"data": [{"id": "small"}]}))
            return
        call.begin()
        for word in f"{ANSWER[:-1]} [1]. There are 99 boats [1].".split(" "):
            call.say(f"{word} ")
            time.sleep(0.02)
        call.finish()

    model = serving(write)
    settings = {"CTX_MODEL": "small", "CTX_MODEL_URL": f"{model.url}/v1"}
    with served(own_index, env=settings) as server:
        visitor = visit(browser, server)
        page = visitor.open("/")
        visitor.page.fill("#q", QUESTION)
        page.press("#q", "Enter")
        expect(page.locator(".written-head")).to_contain_text("small is writing from the sources")
        expect(page.locator(".written-head")).to_contain_text("1 of 2 carried")
        expect(page.locator(".sentence.carried .sign")).to_contain_text("✓")
        expect(page.locator(".sentence.not-found .sign")).to_contain_text("✗")
        expect(page.locator(".doubts")).to_contain_text("99")
        page.locator(".written .cite").first.click()
        expect(page.locator("#source-1")).to_be_focused()
        page.locator("#filters > summary").click()
        page.locator("#write").uncheck()
        visitor.ask()
        expect(page.locator(".written")).to_be_hidden()
        assert "write=no" in page.url
        visitor.close()


_BLOCKS = """async ([text, marks]) => {
    const { blocksOf } = await import("/static/text.js");
    return blocksOf(text, { marks }).map((block) => [
        block.querySelector("table") ? "table" : block.tagName === "PRE" ? "code" : block.className || "text",
        [...block.querySelectorAll("tr")].map((row) =>
            [...row.cells].map((cell) => cell.textContent.replace(/\\s+/g, " "))),
        block.querySelector("table") ? "" : block.textContent.replace(/\\s+/g, " ").trim(),
        [...block.querySelectorAll("mark")].map((mark) => mark.textContent),
    ]);
}"""


def test_the_text_of_a_page_is_what_a_terminal_shows(visiting: Visiting, own_index: Path) -> None:
    """The page has a reader of markdown of its own, for it works with spans: it must see what ours sees."""
    page = visiting().open("/")
    with Index.open(own_index) as index:
        texts = [view.item.text for info in index.documents.list() for view in index.documents.pages(info.doc_id)]
    texts += ["# A\n- b\n  c\n1. d\n> e | f | g\n\\# h\n----\n```\ni  |  j\n```\n| k \\| l | m |\n|---|---|\n| n | o |"]
    for text in texts:
        seen = page.evaluate(_BLOCKS, [text, []])
        ours = blocks(text)
        assert [kind for kind, *_ in seen] == [shown_kind(block) for block in ours]
        assert [rows for _, rows, *_ in seen] == [[list(row) for row in block.rows] for block in ours]
        assert [words for *_, words, _ in seen] == [" ".join(block.text.removeprefix(BULLET).split()) for block in ours]


def shown_kind(block: Block) -> str:
    return "text" if block.kind == "item" and not block.text.startswith(BULLET) else block.kind


def test_marks_are_counted_in_characters(visiting: Visiting) -> None:
    """Python counts characters, JavaScript halves of some of them."""
    page = visiting().open("/")
    text = "𝒳𝒴 leave\n\n| 😀 leave | b |\n|---|---|\n| leave |"
    marks = [[at, at + 5] for at in range(len(text)) if text.startswith("leave", at)]
    assert [found for *_, found in page.evaluate(_BLOCKS, [text, marks])] == [["leave"], ["leave", "leave"]]
    hidden = "re\u202everse\u200bd\x1b[31m"
    [[_, _, words, _]] = page.evaluate(_BLOCKS, [hidden, []])
    assert words == "reversed�[31m"
