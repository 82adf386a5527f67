"""Words that stand on one page only: is that page among ten by hybrid as it is by lexical?

Each word is asked alone, inside a sentence, beside a common word and beside a neighbour of its page.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from ingest import Observer, ingest
from research import ChromaClient, SearchEngine
from research.settings import Settings
from research.store import STOP_WORDS, Catalog, IndexPaths
from tests.bench.sparse import corpora, write
from tests.bench.table import line, title

AMONG = 10
WORDS = 50
_WORD = re.compile(r"[^\W_]+(?:[-_.'’][^\W_]+)*")
_MODES = ("lexical", "hybrid")

# A question from a rare word and another word of its page.
KINDS: Mapping[str, Callable[[str, str], str]] = {
    "alone": lambda word, _: word,
    "in a sentence": lambda word, _: f"Where is {word} mentioned?",
    "what is it": lambda word, _: f"What do the documents say about {word}?",
    "with a common word": lambda word, _: f"{word} page",
    "with a neighbour": lambda word, neighbour: f"{neighbour} {word}",
}


def run(eval_folder: Path, keep: Path | None = None) -> None:
    title(f"A word of one page: its page among {AMONG} by {' / '.join(_MODES)}")
    totals: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        for corpus in corpora():
            documents = folder / f"pdfs-{corpus.seed}"
            rare = write(corpus, documents, WORDS)
            totals += _one(corpus.name, _index(documents, folder / f"index-{corpus.seed}"), rare, corpus.seed)
        line("all of these", "", _figures(totals))
        if (eval_folder / "hostile").is_dir():
            _one("hostile", _index(eval_folder / "hostile", folder / "index-hostile"), None, 0)


def _index(documents: Path, root: Path) -> Path:
    if not root.exists():
        ingest(IndexPaths(root), [documents], settings=Settings(images=False), observer=Observer())
    return root


def _one(name: str, root: Path, rare: list[str] | None, seed: int) -> Counter[tuple[str, str]]:
    """How many pages were found, by kind of question and mode. Without `rare` words the corpus's own are asked for."""
    found: Counter[tuple[str, str]] = Counter()
    with ChromaClient(root) as client:
        pages, places = words_of_pages(client.catalog), words_of_one_page(client.catalog)
        pick = random.Random(seed)
        asked = [word.casefold() for word in rare] if rare else sorted(word for word in places if len(word) > 3)
        asked = [word for word in asked if word in places]
        asked = pick.sample(asked, min(WORDS, len(asked)))
        engine = SearchEngine(client)
        for word in asked:
            others = sorted(pages[places[word]] - {word} - STOP_WORDS)
            neighbour = pick.choice(others) if others else ""
            for kind, question in KINDS.items():
                for mode in _MODES:
                    outcome = engine.run(question(word, neighbour), AMONG, mode)
                    found[kind, mode] += places[word] in {entry.page.page_id for entry in outcome.found}
    line(f"{name}, {len(asked)} words of {len(pages)} pages", "", _figures(found))
    return found


def _figures(found: Counter[tuple[str, str]]) -> str:
    return "; ".join(f"{kind} {'/'.join(str(found[kind, mode]) for mode in _MODES)}" for kind in KINDS)


def words_of_pages(catalog: Catalog) -> dict[int, set[str]]:
    ids = [int(row[0]) for row in catalog.execute("SELECT page_id FROM pages")]
    return {
        page_id: {match.group().casefold() for match in _WORD.finditer(text)}
        for page_id, text in catalog.pages.markdowns(ids)
    }


def words_of_one_page(catalog: Catalog) -> dict[str, int]:
    """Every word that stands on exactly one page, and which."""
    pages = words_of_pages(catalog)
    counts = Counter(word for found in pages.values() for word in found)
    return {word: page_id for page_id, found in pages.items() for word in found if counts[word] == 1}
