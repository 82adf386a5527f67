"""Sentences written by hand about pages of data/, as cases: their files say which are true and which false."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from research.index import Index
from tests.research.answer.answer_cases import Case, case_of

HERE = Path(__file__).parent
NO_HARM = Path(__file__).parents[3] / "data" / "no-harm" / "source"


def no_harm_pages() -> dict[str, list[str]]:
    """The pages of data/no-harm as their text, heading first."""
    return {
        file.stem: [f"# {page}" for page in file.read_text(encoding="utf-8").split("\n# ")[1:]]
        for file in sorted(NO_HARM.glob("*.txt"))
    }


def index_pages(root: Path) -> dict[str, list[str]]:
    """The pages of an index as their markdown, by the name of their file."""
    with Index(root) as index, index.catalog.snapshot() as reader:
        return {
            info.filename: [reader.pages.markdown(info.doc_id, n) or "" for n in range(1, info.num_pages + 1)]
            for info in sorted(reader.documents.all(), key=lambda info: info.filename)
        }


def hand_cases(name: str, documents: Mapping[str, Sequence[str]]) -> Iterator[Case]:
    """Of one file beside this one. The other two sources are the next pages of the collection."""
    pages = [(document, number) for document, texts in documents.items() for number in range(1, len(texts) + 1)]
    place = pages[0]
    for count, line in enumerate((HERE / name).read_text(encoding="utf-8").splitlines()):
        if line.startswith("@ "):
            document, number = line[2:].rsplit(" ", 1)
            place = (document, int(number))
        elif line.startswith(("+ ", "- ")):
            at = pages.index(place)
            texts = [(d, documents[d][n - 1]) for d, n in (place, pages[at - 7], pages[at - 3])]
            own = count % 3 + 1
            placed = dict(zip((own, own % 3 + 1, (own + 1) % 3 + 1), texts, strict=True))
            yield case_of("reworded" if line[0] == "+" else "false", line[2:], own, placed)
