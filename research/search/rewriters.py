"""Rewriters: what changes the text that is searched. Each has a name, can be switched off, and says what it did.

A rewriter may change the text that the legs get (`before`). Once that has been searched, it may have the pages inside
some of the documents found ranked by another text (`rerankings`): they share the places that their document has, so no
other document moves.

A rewriter is imported when a question holds a word that could concern it, so that other questions pay nothing.

The form of an answer is no matter of the search: "… Round your answer to two decimal places." says how to answer, not
what to look for; its words would lead to pages with decimal places. A sentence goes only if it is unmistakable: an
order, no question, and made of nothing but words about form. One word about anything else keeps it: "The answer filed
by the defendant", "Round 3 leader?", "State the notice period in the format clause 4 requires" are about documents.

"If that is not a useful metric, then state that." goes as well, where the rest of the question holds every word of it
that is not about the question itself.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.errors import UsageError
from research.models import Question, Rewrite
from research.search.legs import Ranked, Reranking
from research.settings import REWRITERS
from research.store import STOP_WORDS, Reader

if TYPE_CHECKING:
    from research.store import Reader

ANSWER_FORM = "answer-form"

_SENTENCE_END = re.compile(r"(?<=[?!])\s+|(?<=[\w)]\?)(?=[A-Z][a-z]+\s)|(?<=\.)\s+(?=[\"“(\[]*[A-Z])")
# Somebody's example of an answer: ['Page 2', 'Page 4'], {"total": 3}, "12.5".
_EXAMPLE = re.compile(r"\[[^\]]*\]|\{[^}]*\}|\"[^\"]*\"|“[^”]*”|'[^']*'")
_WORD = re.compile(r"[^\W\d_]+|\d+")

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_POLITE, _VERBS, _SUBJECTS, _FORMS, _SMALL, _JUDGING, _DOUBTED = (
    frozenset[str](_TABLES["form"][name].split())
    for name in ("polite", "verbs", "subjects", "forms", "small", "judging", "doubtful")
)
_KNOWN = _POLITE | _VERBS | _SUBJECTS | _FORMS | _SMALL
_DOUBTFUL = STOP_WORDS | _JUDGING | _DOUBTED
_UNLESS = re.compile(r"if\b(?P<doubt>.*?)\b(?:then |please )*(?:state|say) (?:that|so)(?: and (?:explain )?why)?")


def without_form(question: str) -> Rewrite | None:
    """The question without the sentences that are only about form; None if it has none, or nothing else."""
    sentences = _SENTENCE_END.split(question)
    kept = [sentence for sentence in sentences if not _is_about_form(sentence)]
    kept = [sentence for sentence in kept if not _is_a_doubt(sentence, kept)]
    if not kept or len(kept) == len(sentences):
        return None
    dropped = len(sentences) - len(kept)
    why = f"left out {dropped} sentence{'s' * (dropped > 1)} about the form of the answer"
    return Rewrite(ANSWER_FORM, question, " ".join(kept), why)


def _is_about_form(sentence: str) -> bool:
    """Whether a sentence asks for a form of the answer and for nothing else."""
    if "?" in sentence:
        return False
    words = _words(_EXAMPLE.sub(" ", sentence))
    while words and words[0] in _POLITE:
        del words[0]
    if not words or words[0] not in _VERBS:
        return False
    if any(word not in _KNOWN and not word.isdecimal() for word in words):
        return False
    # "Round to 2 places", "Answer in millions", "Write the answer in int format".
    about = words[0] in ("answer", "round", "respond", "reply") or not _SUBJECTS.isdisjoint(words[1:])
    return about and not _FORMS.isdisjoint(words[1:])


def _is_a_doubt(sentence: str, sentences: Sequence[str]) -> bool:
    """Whether a sentence only says what to answer if the rest of the question makes no sense."""
    found = None if "?" in sentence else _UNLESS.fullmatch(" ".join(_words(sentence)))
    if found is None:
        return False
    doubt = set(found["doubt"].split())
    if doubt == {"not"}:
        return True
    elsewhere = {word for other in sentences if other is not sentence for word in _words(other)}
    return not _JUDGING.isdisjoint(doubt) and doubt <= _DOUBTFUL | elsewhere


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


# Up to so many first pages of a document stand out, if the score falls by so much after them. On filings, where nearly
# all answers are in the statements, the longer question agrees about such pages.
_STANDING_OUT = 3
_GAP = 0.03
# So many pages of the other text may come before the best one kept; then they take turns.
_AHEAD = 5

# Shorter words are a letter away from too many others to be a slip of a name.
LEAST_LETTERS = 5

# Tests hold them against what the rewriters look for.
FORM_HINTS: list[str] = _TABLES["hints"]["form"]
FINANCE_HINTS: list[str] = _TABLES["hints"]["finance"]


def may_name_a_ratio(question: str, own_tables: Sequence[str] = ()) -> bool:
    """Told quickly, before the tables are read."""
    text = f"{question} {question.lower()}"
    return bool(own_tables) or any(hint in text for hint in FINANCE_HINTS)


@dataclass(frozen=True, slots=True)
class Rewriters:
    """The rewriters that are switched on, in their order: they change the text that is searched, and say so.
    `vocabulary` names the user's own tables."""

    names: Sequence[str] = ()
    vocabulary: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        check_names(self.names)

    def before(self, question: str, reader: Reader) -> tuple[str, list[Rewrite]]:
        """The text to search, and what was done to make it of the question."""
        rewrites = []
        for name in self.names:
            done = _BEFORE[name](question, reader) if name in _BEFORE else None
            if done is not None and done.after != question:
                rewrites.append(done)
                question = done.after
        return question, rewrites

    def rerankings(
        self, question: Question, rewrites: Sequence[Rewrite], reader: Reader, ranked: Sequence[Ranked]
    ) -> list[Reranking]:
        """What to rank anew after the question was searched by the text that `rewrites` made. Best page first."""
        text = question.wording
        found: list[Reranking | None] = []
        corrected = next((done for done in rewrites if done.name == "names"), None)
        if corrected is not None:
            from research.search.names import as_written

            found.append(as_written(corrected, reader, ranked))
        elif "names" in self.names:
            from research.search.names import without_names

            found.append(without_names(question, reader, ranked))
        if "finance" in self.names and may_name_a_ratio(text, self.vocabulary):
            named = next((each for each in found if each is not None and each.named), None)
            if named is not None:  # it has chosen the documents, and tells their lines no better apart
                text, ranked = named.question, [page for page in ranked if page.doc_id in named.documents]
            found.append(expand(text, reader, ranked, self.vocabulary))
        return [reranking for reranking in found if reranking is not None]

    def merge(self, plain: Sequence[Ranked], other: Sequence[Ranked], reranking: Reranking) -> list[Ranked]:
        """The plain ranking, in which the pages of each document reranked stand in the order of the other one.

        A page takes the score of the place it comes to. Pages that only the other text found push the last ones of
        their document to the end. Where nothing of the plain ranking is to be kept, the documents share their places:
        which of two editions comes first is then up to the other text, too.
        """
        if reranking.named:
            return _as_named(plain, other, reranking)
        if not reranking.keep_best:
            return _shared_places(plain, other, frozenset(reranking.documents))
        places = {doc_id: iter(_order(doc_id, plain, other)) for doc_id in reranking.documents}
        merged = [
            Ranked(next(places[page.doc_id]), page.doc_id, page.score) if page.doc_id in places else page
            for page in plain
        ]
        least = min((page.score for page in plain), default=0.0)
        return merged + [Ranked(page_id, doc_id, least) for doc_id, rest in places.items() for page_id in rest]


def _as_named(plain: Sequence[Ranked], other: Sequence[Ranked], reranking: Reranking) -> list[Ranked]:
    """Every page of a document that the question names counts as if it held the name, and by the question without it:
    the more, the more of the question is the name and the fewer documents it names. So pages are told apart by what is
    asked, and not by how often they name their document."""
    share = min(1.0, 2 * reranking.named / reranking.meant)
    scores = {page.page_id: reranking.named + (1 - reranking.named) * page.score for page in other}
    mixed = (
        page._replace(score=(1 - share) * page.score + share * scores.get(page.page_id, page.score)) for page in plain
    )
    return sorted(mixed, key=lambda page: -round(page.score, 6))


def _shared_places(plain: Sequence[Ranked], other: Sequence[Ranked], documents: frozenset[str]) -> list[Ranked]:
    """The plain ranking, in which the pages of these documents stand in the order of the other one."""
    own = [page for page in [*other, *plain] if page.doc_id in documents]
    order = iter({page.page_id: page.doc_id for page in own}.items())
    merged = [Ranked(*next(order), page.score) if page.doc_id in documents else page for page in plain]
    least = min((page.score for page in plain), default=0.0)
    return merged + [Ranked(page_id, doc_id, least) for page_id, doc_id in order]


def _order(doc_id: str, plain: Sequence[Ranked], other: Sequence[Ranked]) -> list[int]:
    """The pages of one document: those that stand out, then by the better of two ranks, the plain one with a delay."""
    own = [page for page in plain if page.doc_id == doc_id]
    fall = {n: own[n - 1].score - own[n].score for n in range(1, min(len(own), _STANDING_OUT + 1))}
    staying = max((n for n, gap in fall.items() if gap >= _GAP), default=0)
    rank = {page.page_id: n + _AHEAD - 0.5 for n, page in enumerate(own, start=1)}
    found = (page.page_id for page in other if page.doc_id == doc_id)
    rank.update((page_id, min(n, rank.get(page_id, n))) for n, page_id in enumerate(found, start=1))
    rank.update((page.page_id, n - staying) for n, page in enumerate(own[:staying]))
    return sorted(rank, key=lambda page_id: rank[page_id])


def check_names(names: Sequence[str]) -> None:
    for name in names:
        if name not in REWRITERS:
            raise UsageError(f"unknown rewriter {name!r}", hint="known rewriters: " + ", ".join(REWRITERS))


def _answer_form(question: str, reader: Reader) -> Rewrite | None:
    lower = question.lower()
    return without_form(question) if any(hint in lower for hint in FORM_HINTS) else None


def _names(question: str, reader: Reader) -> Rewrite | None:
    unknown = [word for word in reader.words.unknown(question) if len(word) >= LEAST_LETTERS]
    if not unknown:
        return None
    from research.search.names import with_corrections

    return with_corrections(question, reader, unknown)


def _collection(question: str, reader: Reader) -> Rewrite | None:
    from research.search.collection import topic_alone

    return topic_alone(question)


_BEFORE: dict[str, Callable[[str, Reader], Rewrite | None]] = {
    "answer-form": _answer_form,
    "collection": _collection,
    "names": _names,
}


# A table is read while a question waits. The one inside the package is a tenth of this.
MOST_BYTES = 100_000
MOST_ENTRIES = 500
MOST_LINES = 40  # words that one entry adds; more would drown the question
_MOST_LETTERS = 80  # of a name or phrase

Groups = tuple[tuple[str, ...], ...]
"""Phrases that stand together on one page; one group is enough."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a question may call something, and the words that stand in documents instead."""

    names: tuple[str, ...]  # in lower case
    capitals: tuple[str, ...]
    lines: tuple[str, ...]
    rows: tuple[str, ...]
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    entries: tuple[Entry, ...]
    statements: Mapping[str, Groups]


def read_table(path: Path, known: Mapping[str, Groups] | None = None) -> Table:
    """The table in a file. `known`: statements that its entries may name beside those it defines."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _wrong(path, f"is larger than {MOST_BYTES:,} bytes")
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _wrong(path, f"cannot be read: {error}") from error
    _check_keys(path, found, {"statements", "entry"}, "the table")
    statements = _statements(path, found.get("statements", {}))
    entries = found.get("entry", [])
    if not isinstance(entries, list) or len(entries) > MOST_ENTRIES:
        raise _wrong(path, f"must hold a list of at most {MOST_ENTRIES} [[entry]] tables")
    usable = {**(known or {}), **statements}
    usual = tuple(statements or usable)
    return Table(tuple(_entry(path, n, entry, usable, usual) for n, entry in enumerate(entries, start=1)), statements)


def _statements(path: Path, found: Any) -> dict[str, Groups]:
    if not isinstance(found, dict):
        raise _wrong(path, "[statements] must be a table")
    read = {}
    for kind, groups in found.items():
        if not isinstance(groups, list) or not groups:
            raise _wrong(path, f"statement {kind!r} must be a list of lists of phrases")
        read[kind] = tuple(_texts(path, group, f"statement {kind!r}") for group in groups)
        if not all(read[kind]):
            raise _wrong(path, f"statement {kind!r} has an empty list of phrases")
    return read


def _entry(path: Path, number: int, found: Any, statements: Mapping[str, Groups], usual: tuple[str, ...]) -> Entry:
    where = f"entry {number}"
    if not isinstance(found, dict):
        raise _wrong(path, f"{where} must be a table")
    _check_keys(path, found, {"names", "capitals", "lines", "rows", "statements"}, where)
    names = tuple(name.lower() for name in _texts(path, found.get("names", []), where))
    capitals = _texts(path, found.get("capitals", []), where)
    lines = found.get("lines", "")
    wanted = _texts(path, found.get("statements", []), where) or usual
    if not names and not capitals:
        raise _wrong(path, f"{where} has neither names nor capitals")
    if not isinstance(lines, str) or not 1 <= len(lines.split()) <= MOST_LINES:
        raise _wrong(path, f"{where} must have `lines` of 1 to {MOST_LINES} words")
    for kind in wanted:
        if kind not in statements:
            raise _wrong(path, f"{where} names the unknown statement {kind!r}; known are: {', '.join(statements)}")
    rows = _texts(path, found.get("rows", []), where)
    return Entry(names, capitals, tuple(lines.split()), rows, wanted)


def _texts(path: Path, found: Any, where: str) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(
        isinstance(text, str) and text.strip() and len(text) <= _MOST_LETTERS for text in found
    ):
        raise _wrong(path, f"{where}: expected a list of texts of up to {_MOST_LETTERS} letters")
    return tuple(found)


def _check_keys(path: Path, found: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in found:
        if key not in known:
            raise _wrong(path, f"{where} has the unknown key {key!r}; known are: {', '.join(sorted(known))}")


def _wrong(path: Path, problem: str) -> UsageError:
    hint = "mend the file, or take it out of the setting vocabulary"
    return UsageError(f"the vocabulary {path}: {problem}", hint=hint)


NAME = "finance"
TABLE = Path(__file__).with_name("finance.toml")

# Documents after these are hardly what the question is about, and all of their pages are scored again.
_DOCUMENTS = 5
_BETWEEN = re.compile(r"[^\w&]+")


def expand(question: str, reader: Reader, ranked: Sequence[Ranked], own_tables: Sequence[str] = ()) -> Reranking | None:
    """The question with the lines of every ratio it names, for the documents to look for them in."""
    table = _table(own_tables)
    matched = list(matches(question, table))
    if not matched:
        return None
    first = list(dict.fromkeys(page.doc_id for page in ranked))[:_DOCUMENTS]
    kinds = dict.fromkeys(kind for _, entry in matched for kind in entry.statements)
    holding = {kind: reader.words.documents_holding(first, table.statements[kind]) for kind in kinds}
    acting = [(name, entry) for name, entry in matched if any(holding[kind] for kind in entry.statements)]
    documents = tuple(
        doc_id for doc_id in first if any(doc_id in holding[kind] for _, entry in acting for kind in entry.statements)
    )
    if not documents:
        return None
    added = dict.fromkeys(word for _, entry in acting for word in entry.lines)
    names = ", ".join(dict.fromkeys(name for name, _ in acting))
    why = f"{names}: looked for the lines it is computed from, in documents that hold such statements"
    done = Rewrite(NAME, question, f"{question} {' '.join(added)}", why, documents)
    return Reranking(done.after, documents, keep_best=True, rewrite=done)


def row_names(question: str) -> list[str]:
    """What the rows are called that a question for a ratio or a line of a statement is answered by."""
    if not may_name_a_ratio(question):
        return []
    return [row for _, entry in matches(question, _own_table()) for row in (entry.rows or entry.lines)]


def _table(own_tables: Sequence[str]) -> Table:
    table = _own_table()
    for path in own_tables:
        own = read_table(Path(path), known=table.statements)
        table = Table((*table.entries, *own.entries), {**table.statements, **own.statements})
    return table


@cache
def _own_table() -> Table:
    return read_table(TABLE)


def matches(question: str, table: Table) -> Iterator[tuple[str, Entry]]:
    """Each entry that the question names, with the name it used."""
    text = f" {_BETWEEN.sub(' ', question)} "
    lower = text.lower()
    shouted = question.isupper() and len(re.findall(r"[A-Z]{2,}", question)) > 1  # capitals tell nothing then
    for entry in table.entries:
        named = next((name for name in entry.names if f" {name} " in lower or f" {name}s " in lower), None)
        if named is None and not shouted:
            named = next((name for name in entry.capitals if f" {name} " in text), None)
        if named is not None:
            yield named, entry
