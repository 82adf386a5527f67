"""The sample PDFs are what data/README.md says, and the questions point at pages that answer them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pymupdf
import pytest

DATA = Path(__file__).resolve().parents[2] / "data"
SAMPLES = DATA / "samples"
PAGES = {
    "brindle-g4-controller-manual.pdf": 8,
    "footbridge-inspection-letter-scan.pdf": 2,
    "night-cooling-school-libraries.pdf": 5,
    "saltmarsh-handbook-2024.pdf": 12,
    "saltmarsh-handbook-2025.pdf": 13,
    "tessel-rowe-annual-report-2024.pdf": 8,
}
KINDS = {"text", "table", "figure", "scan", "document"}


@dataclass(frozen=True)
class Question:
    qid: str
    query: str
    gold: tuple[tuple[str, int], ...]
    answer: str
    kind: str


def load_questions() -> list[Question]:
    lines = (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [Question(**{**row, "gold": tuple((name, page) for name, page in row["gold"])}) for row in rows]


QUESTIONS = load_questions()


@cache
def page_texts(path: Path) -> list[str]:
    with pymupdf.open(path) as doc:
        return [page.get_text() for page in doc]


def words(text: str) -> set[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    # A word broken at a line end counts both as two parts and as one.
    tokens = (plain + " " + re.sub(r"-\s*\n", "", plain)).split()
    return {token.strip(".,;:()[]?!“”") for token in tokens}


def key_words(answer: str) -> set[str]:
    return {word for word in words(answer) if len(word) > 3 or any(char.isdigit() for char in word)}


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    subprocess.run([sys.executable, str(DATA / "make_samples.py"), str(folder)], check=True, capture_output=True)
    return folder


def test_samples_are_the_six_named_files_and_small() -> None:
    files = sorted(SAMPLES.glob("*.pdf"))
    assert {path.name: len(page_texts(path)) for path in files} == PAGES
    assert sum(path.stat().st_size for path in files) < 3_000_000


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_rebuild_gives_the_same_file(rebuilt: Path, name: str) -> None:
    stored, fresh = SAMPLES / name, rebuilt / name
    with pymupdf.open(stored) as doc:
        same_version = doc.metadata["producer"].endswith(f" {pymupdf.VersionBind}")
    if same_version:
        assert fresh.read_bytes() == stored.read_bytes()
    else:  # another PyMuPDF may compress or subset differently; the words must still be the same
        assert [words(text) for text in page_texts(fresh)] == [words(text) for text in page_texts(stored)]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "folder"), [("make_no_harm.py", "no-harm/pdfs"), ("make_parts.py", "parts/pdfs")])
def test_rebuild_gives_the_same_texts(tmp_path: Path, program: str, folder: str) -> None:
    subprocess.run([sys.executable, str(DATA / program), str(tmp_path)], check=True, capture_output=True)
    stored = sorted((DATA / folder).glob("*.pdf"))
    assert [path.name for path in stored] == sorted(path.name for path in tmp_path.glob("*.pdf"))
    for path in stored:
        assert page_texts(path) == page_texts(tmp_path / path.name)


def test_questions_have_unique_ids_known_kinds_and_every_file() -> None:
    assert len({question.qid for question in QUESTIONS}) == len(QUESTIONS) >= 30
    assert {question.kind for question in QUESTIONS} == KINDS
    assert {name for question in QUESTIONS for name, _ in question.gold} == set(PAGES)


def test_gold_pages_hold_the_answer() -> None:
    for question in QUESTIONS:
        assert question.gold, question.qid
        assert all(1 <= page <= PAGES[name] for name, page in question.gold), question.qid
        # A scan, and a chart that is a picture, have no words to look up.
        if question.kind in {"figure", "scan"}:
            continue
        wanted = key_words(question.answer)
        held = [wanted & words(page_texts(SAMPLES / name)[page - 1]) for name, page in question.gold]
        assert wanted, question.qid
        assert set().union(*held) == wanted, question.qid
        assert all(held), f"{question.qid}: a gold page holds no word of the answer"


@pytest.mark.parametrize("year", ["2024", "2025"])
def test_handbook_labels_start_again_after_the_front_matter(year: str) -> None:
    with pymupdf.open(SAMPLES / f"saltmarsh-handbook-{year}.pdf") as doc:
        labels = [page.get_label() for page in doc]
        printed = [page.get_text().split() for page in doc]
    assert labels == ["i", "ii", *(str(number) for number in range(1, len(labels) - 1))]
    assert all(label in tokens for label, tokens in zip(labels[1:], printed[1:], strict=True))


def test_outlines_point_at_their_headings() -> None:
    for name in (
        "saltmarsh-handbook-2024.pdf",
        "saltmarsh-handbook-2025.pdf",
        "brindle-g4-controller-manual.pdf",
    ):
        with pymupdf.open(SAMPLES / name) as doc:
            toc = doc.get_toc()
        texts = [" ".join(unicodedata.normalize("NFKC", text).split()) for text in page_texts(SAMPLES / name)]
        assert toc
        assert [title for _, title, page in toc if title not in texts[page - 1]] == []
    with pymupdf.open(SAMPLES / "saltmarsh-handbook-2024.pdf") as doc:
        assert {level for level, _, _ in doc.get_toc()} == {1, 2, 3}


def test_article_has_no_outline_but_ligatures_and_broken_words() -> None:
    path = SAMPLES / "night-cooling-school-libraries.pdf"
    with pymupdf.open(path) as doc:
        assert doc.get_toc() == []
    text = "".join(page_texts(path))
    assert "ﬂushing" in text
    assert len(re.findall(r"[a-z]-\n[a-z]", text)) > 5


def test_scanned_letter_is_pictures_only() -> None:
    with pymupdf.open(SAMPLES / "footbridge-inspection-letter-scan.pdf") as doc:
        assert [page.get_text() for page in doc] == ["", ""]
        assert [len(page.get_images()) for page in doc] == [1, 1]


def test_order_chart_is_a_picture_on_a_page_with_text() -> None:
    with pymupdf.open(SAMPLES / "tessel-rowe-annual-report-2024.pdf") as doc:
        page = doc[4]
        assert len(page.get_images()) == 1
        assert "Principal risks" in page.get_text()
        assert "Rotterdam" not in page.get_text()


def test_editions_differ_in_numbers_on_the_same_topic() -> None:
    older, newer = (page_texts(SAMPLES / f"saltmarsh-handbook-{year}.pdf")[6] for year in ("2024", "2025"))
    assert "27 working days" in older
    assert "27 working days" not in newer
    assert "29 working days" in newer
