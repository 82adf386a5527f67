"""Corpora like the test suites of PDF programs: many near-empty pages, some ordinary ones, and words that stand on one
page only. Real PDFs, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pymupdf

from tests.bench.made import Words

_CAPTIONS = (
    "Hello World",
    "Hello, world!",
    "Page {n}",
    "This is page {n}",
    "page {n} of {m}",
    "Test {n}",
    "Lorem ipsum dolor sit amet",
    "Sample PDF document",
    "Grey ramp {n} %",
    "CMYK test pattern {n}",
    "Colour bar, sRGB",
    "Text field {n}",
    "Check box {n} Yes No",
    "Signature",
    "This page is intentionally left blank.",
    "The quick brown fox jumps over the lazy dog",
    "abcdefghijklmnopqrstuvwxyz 0123456789",
    "Rotated {n} degrees",
    "Annotation with a pop-up note",
    "Image mask, {n} bits",
    "Chapter {n}",
    "Click here",
    "Original page {n}",
    "Attachment {n}",
    "Expected: a red square",
)
_LOREM = """
    Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et
    dolore magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex
    ea commodo consequat. Duis aute irure dolor in reprehenderit in voluptate velit esse cillum dolore eu fugiat
    nulla pariatur. Excepteur sint occaecat cupidatat non proident, sunt in culpa qui officia deserunt mollit
    anim id est laborum.
"""
_ABROAD = """
    Schmetterling Geburtstag Zeitungsständer Überraschung Straßenbahn Handschuh Regenwurm Feuerwehr
    Kühlschrank papillon grenouille aujourd'hui bibliothèque écureuil pamplemousse parapluie orteil
    chaussette mantequilla murciélago ferrocarril ventana cigüeña pañuelo zapatilla lentamente
    perkele juustoleipä hyttynen lumihiutale järvi kirjasto sateenvarjo velryba zmrzlina kočka
    hvězda motýl čarodějnice бабочка снегопад холодильник берег лягушка учебник ворона гроза метель
    θάλασσα πεταλούδα βιβλιοθήκη καρέκλα σύννεφο χελώνα gökkuşağı kelebek yıldız buzdolabı 蝴蝶 図書館 나비
    rozhlas pomeranč kłopot źdźbło szczęście łabędź
"""
_SYLLABLES = "al ba qua lo fi cen tre mu ri do so ne pha la to xe gra vi sti cor no ur she mil pli bre tan ker"
_ENDINGS = ("us", "alf", "ensis", "ia", "odon", "ella", "iceps", "anthum")

# How many words stand with a rare one, and how often that is so.
NEAR_EMPTY, ANYWHERE, LONG, VERY_LONG = (4, 4, 4, 8, 30), (4, 8, 40, 150, 350), (250, 350, 450), (4, 700, 1400)


@dataclass(frozen=True, slots=True)
class Corpus:
    name: str
    rare: Callable[[random.Random], str]
    beside: Sequence[int]
    seed: int
    text: str = "made"  # what the longer pages hold: made, lorem, or the pages of data/samples
    documents: int = 70


def latin(pick: random.Random) -> str:
    return "".join(pick.choices(_SYLLABLES.split(), k=pick.randint(2, 4))) + pick.choice(_ENDINGS)


def identifier(pick: random.Random) -> str:
    number, name = pick.randint(100, 9999), "".join(pick.choice(_SYLLABLES.split()) for _ in range(2))
    return pick.choice(
        (f"issue{number}", f"bug_{number}", f"T{number // 100:02}-{number % 100:02}_{name}", f"{name}Ref")
    )


def number(pick: random.Random) -> str:
    return pick.choice((str(pick.randint(10_000, 99_999)), f"{pick.randint(10, 999)}.{pick.randint(100, 999)}"))


def code(pick: random.Random) -> str:
    """A part number or a date: rare as a whole only, its pieces stand on many pages."""
    day = f"20{pick.randint(10, 25)}-{pick.randint(1, 12):02}-{pick.randint(1, 28):02}"
    return pick.choice((day, f"{pick.choice('ABCDEF')}-{pick.randint(10, 25)}-{pick.randint(1, 30):02}"))


def abroad(pick: random.Random) -> str:
    return pick.choice(_ABROAD.split())


class English:
    """Words of the encoder's own list, which it knows the sense of; `misspelt`, with two letters changed over."""

    def __init__(self, misspelt: bool = False) -> None:
        self._words = [word for word in Words().vocabulary[3000:20_000] if 5 <= len(word) <= 12]
        self._misspelt = misspelt

    def __call__(self, pick: random.Random) -> str:
        word = pick.choice(self._words)
        at = pick.randint(1, len(word) - 2)
        return word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :] if self._misspelt else word


def corpora() -> list[Corpus]:
    return [
        Corpus("latin names, near-empty pages", latin, NEAR_EMPTY, 1),
        Corpus("latin names, lorem ipsum", latin, ANYWHERE, 2, "lorem"),
        Corpus("identifiers, near-empty pages", identifier, NEAR_EMPTY, 3),
        Corpus("identifiers, long pages", identifier, LONG, 4, "samples"),
        Corpus("numbers", number, ANYWHERE, 5),
        Corpus("English words, near-empty pages", English(), NEAR_EMPTY, 6, "samples"),
        Corpus("English words, long pages", English(), LONG, 7),
        Corpus("misspelt words", English(misspelt=True), ANYWHERE, 8, "lorem"),
        Corpus("words of other languages", abroad, ANYWHERE, 9, "samples"),
        Corpus("words of other languages, long pages", abroad, LONG, 10),
        Corpus("dates and part numbers", code, ANYWHERE, 11),
        Corpus("latin names, 400 documents, very long pages", latin, VERY_LONG, 12, "lorem", 400),
    ]


def write(corpus: Corpus, folder: Path, rare_words: int) -> list[str]:
    """Write the corpus as PDFs and tell its rare words; each stands once."""
    pick = random.Random(corpus.seed)
    texts = _Texts(corpus, pick)
    rare: dict[str, None] = {}
    while len(rare) < rare_words:
        rare[corpus.rare(pick)] = None
    pages = [texts.with_word(word, pick.choice(corpus.beside)) for word in rare]
    pages += [texts.caption() for _ in range(3 * corpus.documents)]
    pages += [texts.long(pick.randint(60, 400)) for _ in range(corpus.documents // 4)]
    pick.shuffle(pages)
    folder.mkdir(parents=True, exist_ok=True)
    cuts = sorted(pick.sample(range(1, len(pages)), corpus.documents - 1))
    for count, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(pages)], strict=True)):
        _write_pdf(folder / f"file-{count:03}.pdf", pages[start:end])
    return list(rare)


class _Texts:
    def __init__(self, corpus: Corpus, pick: random.Random) -> None:
        self._pick = pick
        self._made = Words(corpus.seed)
        self._kind = corpus.text

    def caption(self) -> str:
        return self._pick.choice(_CAPTIONS).format(n=self._pick.randint(1, 99), m=99)

    def long(self, count: int) -> str:
        if self._kind == "lorem":
            words = _LOREM.split() * (count // 60 + 1)
        elif self._kind == "samples":
            words = self._pick.choice(_sample_pages()).split()
        else:
            words = self._made.text(self._pick.randint(0, 50), count).split()
        return " ".join(words[:count])

    def with_word(self, word: str, count: int) -> str:
        words = (self.caption() if count <= 8 else self.long(count)).split()[:count]
        words.insert(self._pick.randint(0, len(words)), word)
        return " ".join(words)


def _sample_pages() -> list[str]:
    found: list[str] = []
    for path in sorted((Path(__file__).parents[2] / "data" / "samples").glob("*.pdf")):
        with pymupdf.open(path) as document:
            found += [text for page in document if len(text := page.get_text()) > 400]
    return found


def _write_pdf(path: Path, pages: Sequence[str]) -> None:
    with pymupdf.open() as document:
        for text in pages:
            escaped = text.replace("&", "&amp;").replace("<", "&lt;")
            document.new_page().insert_htmlbox(pymupdf.Rect(60, 60, 540, 780), f"<p>{escaped}</p>")
        document.save(path, deflate=True)
