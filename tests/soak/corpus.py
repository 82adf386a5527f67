"""A folder of small, varied PDFs, and twenty questions about them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pymupdf

# Each topic has its own words, so that a question has one right document and several nearly right ones.
_TOPICS = (
    ("harbour", "boats pay a berthing fee at the quay", "What do boats pay at the quay?"),
    ("bakery", "rye bread keeps longer than wheat rolls", "Which bread keeps longer?"),
    ("astronomy", "the telescope follows planets across the night sky", "What follows the planets?"),
    ("railway", "the night train stops at every junction", "Where does the night train stop?"),
    ("orchard", "apple trees are pruned in late winter", "When are apple trees pruned?"),
    ("library", "borrowed books are returned within four weeks", "How long may books be borrowed?"),
    ("glacier", "the ice retreats thirty metres a year", "How fast does the ice retreat?"),
    ("theatre", "the curtain rises at half past seven", "When does the curtain rise?"),
    ("hospital", "visitors leave the ward before nine", "When do visitors leave the ward?"),
    ("brewery", "barley is malted for five days", "How long is barley malted?"),
    ("school", "pupils may leave the yard with a pass", "Who may leave the yard?"),
    ("mine", "the shaft is inspected before each shift", "What is inspected before a shift?"),
    ("museum", "the oldest painting hangs in the blue room", "Where is the oldest painting?"),
    ("airport", "baggage is weighed behind the counter", "Where is baggage weighed?"),
    ("forest", "foresters fell spruce after the first frost", "When is spruce felled?"),
    ("weather", "the barometer falls before a storm", "What does the barometer do before a storm?"),
    ("pottery", "glaze melts at twelve hundred degrees", "At what heat does glaze melt?"),
    ("beekeeping", "hives are opened on warm days only", "On which days are hives opened?"),
    ("sailing", "the mainsail is reefed in strong wind", "What is reefed in strong wind?"),
    ("chess", "castling protects the king early in the game", "What protects the king?"),
)
QUESTIONS = tuple(question for _, _, question in _TOPICS)


def make_corpus(folder: Path, documents: int, *, scans: int = 0, seed: int = 11) -> Path:
    """`documents` files of one to three pages, one in five with a picture; the last `scans` have no text layer."""
    random = Random(seed)
    folder.mkdir(parents=True)
    for number in range(documents):
        topic, sentence, _ = _TOPICS[number % len(_TOPICS)]
        path = folder / f"group-{number % 4}" / f"{topic}-{number:03d}.pdf"
        path.parent.mkdir(exist_ok=True)
        with pymupdf.open() as document:
            if number >= documents - scans:
                _scan(document, f"{topic} note {number}: {sentence}.")
            else:
                for page in range(random.choice((1, 1, 2, 3))):
                    _text_page(document, random, f"Report {number}, part {page + 1}: {topic}", sentence)
                if number % 5 == 0:
                    _picture(document[0], random)
                if number % 7 == 0:
                    document.new_page()  # a blank one
            document.save(path)
    return folder


def _text_page(document: Any, random: Random, title: str, sentence: str) -> None:
    page: Any = document.new_page()
    page.insert_text((72, 90), title, fontsize=18)
    filler = " ".join(random.choice(_TOPICS)[0] for _ in range(random.randrange(5, 40)))
    text = f"In year {random.randrange(1900, 2000)} {sentence}. It concerns {filler}."
    page.insert_textbox(pymupdf.Rect(72, 120, 520, 700), text, fontsize=11)


def _picture(page: Any, random: Random) -> None:
    pixels = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 40, 40), 0)
    pixels.set_rect(pixels.irect, tuple(random.randrange(256) for _ in range(3)))
    page.insert_image(pymupdf.Rect(72, 600, 172, 700), pixmap=pixels)


def _scan(document: Any, text: str) -> None:
    """A page that is a picture of its text."""
    with pymupdf.open() as written:
        page: Any = written.new_page(width=420, height=160)
        page.insert_textbox(pymupdf.Rect(30, 30, 400, 150), text, fontsize=22)
        pixels = page.get_pixmap(dpi=110)
        document.new_page(width=420, height=160).insert_image(page.rect, pixmap=pixels)
