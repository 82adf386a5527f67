"""Quotes: how often one of the three holds the answer, given the page that has it; and whether all are verbatim.

    make bench ONLY="quotes --keep FOLDER"

Of mmlongbench-dev the questions whose answer, a text or a number, stands in the text of a gold page. Beside it what a
plain sum of cosine and shared words over the page's single lines would quote.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest import ingest
from research.encoders import TextEncoder, fitting, load_text_encoder
from research.filters import Filters
from research.index import Index
from research.settings import Settings
from tests.bench.table import line, title

_SET = "mmlongbench-dev"
_MARKS = re.compile(r"[*_#`|\\]")


@dataclass(frozen=True, slots=True)
class Case:
    """A question, the page that is given, and the answer that its text holds."""

    query: str
    doc_id: str
    page: int
    text: str
    answer: str


def run(sets: Path, keep: Path | None = None) -> None:
    if not (sets / _SET / "qrels.jsonl").is_file():
        return
    title("Quotes: one of three holds the answer, its page given")
    with tempfile.TemporaryDirectory() as folder:
        root = (keep or Path(folder)) / _SET
        index = Index(root, Settings(images=False))
        if not root.exists():
            ingest(index, [sets / _SET / "pdfs"])
        with index:
            cases = list(_cases(index, sets / _SET / "qrels.jsonl"))
            _measure(index, cases)


def _cases(index: Index, file: Path) -> Iterator[Case]:
    with index.catalog.snapshot() as reader:
        documents = {Path(info.filename).stem: info.doc_id for info in reader.documents.all()}
        for row in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            if row["meta"]["answer_format"] in {"Str", "Int", "Float"}:
                yield from _checkable(reader, row, documents[row["doc"]])


def _checkable(reader: Any, row: dict[str, Any], doc_id: str) -> Iterator[Case]:
    for _, page in row["gold"]:
        text = reader.pages.markdown(doc_id, page) or ""
        if holds(text, str(row["answer"])):
            yield Case(row["query"], doc_id, page, text, str(row["answer"]))
            return


def _measure(index: Index, cases: list[Case]) -> None:
    encoder = load_text_encoder()
    held = plain = first = quotes = verbatim = letters = 0
    for case in cases:
        only = Filters(documents=(case.doc_id,), pages=str(case.page))
        found = index.ask(case.query, filters=only).quotes
        held += any(holds(quote.text, case.answer) for quote in found)
        first += any(holds(quote.text, case.answer) for quote in found[:1])
        plain += any(holds(each, case.answer) for each in _lines(encoder, case)[:3])
        quotes += len(found)
        letters += sum(len(quote.text) for quote in found)
        verbatim += sum(quote.text == case.text[quote.start : quote.end] for quote in found)
    line("questions that can be checked so", str(len(cases)))
    line("held by one of the quotes", f"{held / len(cases):.3f}", f"{held}; goal .50")
    line("held by the first", f"{first / len(cases):.3f}", str(first))
    line("held by three single lines, plain", f"{plain / len(cases):.3f}", str(plain))
    line("verbatim on their page", f"{verbatim} of {quotes}", f"{letters / max(1, quotes):.0f} characters each")


def _lines(encoder: TextEncoder, case: Case) -> list[str]:
    """The page's lines by cosine and the share of the question's words, best first."""
    lines = [each for each in case.text.split("\n") if each.strip()]
    words = set(_words(case.query))
    cosines = encoder.embed([fitting(each, encoder) for each in lines]) @ encoder.embed_query(case.query)
    scores = [float(c) + len(words & set(_words(each))) / len(words) for c, each in zip(cosines, lines, strict=True)]
    return [lines[n] for n in sorted(range(len(lines)), key=lambda n: -scores[n])]


def holds(text: str, answer: str) -> bool:
    """Whether the answer stands in a text as words of its own."""
    wanted, said = _plain(answer).strip(" ."), _plain(text)
    if not wanted:
        return False
    before = r"(?<![\w.,])" if wanted[0].isalnum() else ""
    return re.search(rf"{before}{re.escape(wanted)}(?!\w)", said) is not None


def _plain(text: str) -> str:
    return " ".join(_MARKS.sub(" ", text).casefold().split())


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
