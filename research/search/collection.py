"""Answers a question for documents by documents, with a page of each, the best documents first.

A document belongs to the answer if a page of it holds all of the topic's words, or if it is nearly as good as the best
without them. Where documents are to be about the topic, and not only to mention it, those far behind the best are left
out, and one that has the words in its name or on its first page is shown by that: it says what the document is.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from research.models import Question, Rewrite
from research.search.legs import Boosted, Ranked
from research.store import analyze, normalize

if TYPE_CHECKING:
    from research.store import Reader

NAME = "collection"

# How much of the best document's score one must have without the words, and with them where it is to be about them.
_NEARLY = 0.75
_ABOUT = 0.5
_SHOWN = 100  # more are hardly looked at


def topic_alone(question: str) -> Rewrite | None:
    """The topic of a question for documents, so that pages which list documents are not the best; None if it asks for
    none."""
    asked = collection_question(question)
    if asked is None:
        return None
    return Rewrite(NAME, question, asked.topic, "it asks for documents; they are ranked by their topic")


class CollectionBooster:
    """The booster of documents, where a question asks for documents."""

    name = NAME

    def boost(self, question: Question, reader: Reader, ranked: Sequence[Ranked]) -> Boosted:
        asked = collection_question(question.text)
        if asked is None or not ranked:
            return Boosted(ranked)
        holding = reader.lookups.pages_with_all(asked.topic)
        named = list(_documents(asked, ranked, holding))
        if not asked.mentions:
            named = _by_first_page(reader, asked, named)
        # Those without the words are near, and no more: nobody shall take them for what was asked for.
        sure = frozenset(page.page_id for page in named if page.doc_id in holding)
        return Boosted(named, sure, "documents")


def _documents(asked: CollectionQuestion, ranked: Sequence[Ranked], holding: Mapping[str, int]) -> Iterator[Ranked]:
    """The best page of each document of the answer. `holding`: doc_id → the best page with all words of the topic."""
    best: dict[str, Ranked] = {}
    for page in ranked:
        best.setdefault(page.doc_id, page)
    top = ranked[0].score
    for doc_id, page in best.items():
        share = (0.0 if asked.mentions else _ABOUT) if doc_id in holding else _NEARLY
        if page.score >= share * top:
            yield page
    if asked.mentions:  # one with a thousand better pages may leave no place for others that speak of it once
        least = min(page.score for page in ranked)
        yield from (Ranked(page_id, doc_id, least) for doc_id, page_id in holding.items() if doc_id not in best)


def _by_first_page(reader: Reader, asked: CollectionQuestion, named: Sequence[Ranked]) -> list[Ranked]:
    words = set(analyze(asked.topic))
    called = reader.lookups.named_words(words)
    fronts = reader.lookups.front_pages([page.doc_id for page in named[:_SHOWN]])
    first = {doc_id: pages[0].page_id for doc_id, pages in fronts.items() if pages[0].words}
    held = reader.lookups.words_on(list(first.values()), words)

    def shown(page: Ranked) -> Ranked:
        front = first.get(page.doc_id, page.page_id)
        fits = held.get(front, set()) >= words or called.get(page.doc_id, set()) >= words
        return page._replace(page_id=front) if fits else page

    return [shown(page) for page in named]


# What is longer is a pasted text.
_MOST_LETTERS = 300
# A question that begins so asks for something else.
_NOT_FOR_DOCUMENTS = (
    "how ",
    "why ",
    "when ",
    "who ",
    "wie ",
    "warum ",
    "wann ",
    "wer ",
    "comment ",
    "pourquoi ",
    "hoe ",
)
_WORD = re.compile(r"[^\W\d_]+")
_MENTION = re.compile(
    r"\b(?:mention|menci|menzion|contain|contien|conten|enthalt|bevat|refer|erwahn|nenn|noem|vermeld|citan|word\b|vor\b)"
    r"|提到|提及|涉及|包含|言及|触れ"
)
_EDGES = " \t\n?？¿!！¡.。…,;:\"'“”„«»「」『』()"


@dataclass(frozen=True, slots=True)
class Language:
    """How a language asks for documents: alternatives of patterns, in lower case and without accents."""

    documents: str  # several; plain words
    ask: str  # list the, show me all
    which: str
    about: str  # what links documents to a topic
    document: str = "(?!)"  # a single one, after `which` alone; plain words
    is_about: str = "(?!)"  # what links it
    own: str = "(?!)"  # do I have, are there
    that: str = "(?!)"
    inside: str = "(?!)"  # in which
    is_it: str = "(?!)"  # is, does it say anything about
    mentioned: str = "(?!)"  # what may stand after a topic


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
LANGUAGES: Mapping[str, Language] = {code: Language(**entry) for code, entry in _TABLES.items()}

# In scripts without spaces the topic stands before or after, and no word ends.
_ZH = "(?:文件|文档|论文|报告|资料|文章)"
_ZH_ABOUT = "(?:提到|提及|涉及|讨论|讲到|谈到|包含|是关于|关于|有关)"
_JA = "(?:文書|論文|資料|書類|ファイル|報告書|レポート|文献)"
_JA_ABOUT = (
    "(?:に関する|に関して書かれた|についての|について書かれた|に言及している|に言及する|に触れている|を扱う|を扱った)"
)
_UNSPACED = "unspaced"
_UNSPACED_PATTERNS = (
    rf"(?:请)?(?:列出|找出|显示|查找|有哪些|有没有|我有哪些)(?:所有|全部)?{_ZH_ABOUT}(?P<topic>.+?)的{_ZH}",
    rf"(?:请问)?(?:哪些|什么){_ZH}(?:里|中)?{_ZH_ABOUT}了?(?P<topic>.+?)",
    rf"{_ZH_ABOUT}(?P<topic>.+?)的{_ZH}(?:有哪些|有什么|有吗)?",
    rf"(?P<topic>.+?){_JA_ABOUT}{_JA}(?:は(?:どれ|何|あり|ある).*|を.*|の一覧.*|一覧.*|リスト.*)?",
)

# What may stand between that and the topic: "parlent de l'eau", "um den See", "contain the word bridge".
_LINK = (
    r"(?:(?:of|about|on|de|des|du|del|della|dei|degli|delle|do|da|dos|das|di|van|von|vom|um|a|au|aux)\s+|(?:d|dell)')?"
    r"(?:(?:the|an?|der|die|das|den|dem|eine?n?|les?|la|une?|el|los|las|una|il|lo|gli|i|os?|as|het|de|een)\s+|l')?"
    r"(?:(?:words?|terms?|phrase|wort|mot|palabra|parola|palavra)\s+)?"
)


@dataclass(frozen=True, slots=True)
class CollectionQuestion:
    topic: str  # in the question's own words
    mentions: bool  # documents that mention it are enough; otherwise they are to be about it


def collection_question(text: str) -> CollectionQuestion | None:
    """What the documents are to be about that a question asks for; None if it asks for none."""
    if len(text) > _MOST_LETTERS or text.lower().startswith(_NOT_FOR_DOCUMENTS):
        return None
    asked = text.strip(_EDGES)
    folded = _folded(asked)
    words = set(_WORD.findall(folded))
    for code, called in _words_for_documents().items():
        if not words.isdisjoint(called) or (code == _UNSPACED and not folded.isascii()):
            for pattern in _patterns(code):
                match = pattern.fullmatch(folded)
                if match:
                    start, end = match.span("topic")
                    topic = asked[start:end].strip(_EDGES)
                    mentions = _MENTION.search(f"{folded[:start]} {folded[end:]}") is not None
                    return CollectionQuestion(topic, mentions) if analyze(topic) else None
    return None


def _folded(text: str) -> str:
    """Without case and accents, letter by letter, so that places in it are places in the text."""
    if text.isascii():
        return text.lower()
    folded = (normalize(letter) for letter in text.replace("’", "'"))
    return "".join(plain if len(plain) == 1 else letter for letter, plain in zip(text, folded, strict=True))


@lru_cache(maxsize=1)
def _words_for_documents() -> dict[str, frozenset[str]]:
    """Of each language the words for documents, one of which a question must hold: most hold none."""
    every = {code: frozenset(f"{each.documents}|{each.document}".split("|")) for code, each in LANGUAGES.items()}
    return every | {_UNSPACED: frozenset()}


@lru_cache(maxsize=len(LANGUAGES) + 1)
def _patterns(code: str) -> tuple[re.Pattern[str], ...]:
    """Made for the first question that may ask for documents in this language: a cold start is dear."""
    patterns = _UNSPACED_PATTERNS if code == _UNSPACED else _spaced(LANGUAGES[code])
    return tuple(re.compile(pattern) for pattern in patterns)


def _spaced(words: Language) -> Iterator[str]:
    topic = r"(?P<topic>\S.*?)"
    after = rf"(?:\s+(?:{words.mentioned}))?"
    asking = rf"(?:(?:{words.ask}|{words.which})\s+)?"
    linked = rf"(?:{words.about})(?:\s+|(?<=')){_LINK}"
    docs = rf"(?:{words.documents})"
    yield rf"{asking}{docs}(?:\s+(?:{words.own}))?,?(?:\s+(?:{words.that}))?\s+{linked}{topic}{after}"
    yield rf"(?:{words.which})\s+(?:{words.document})\s+(?:{words.is_about})\s+{topic}"
    yield rf"(?:{words.inside})\s+{docs}\s+(?:{words.is_it})\s+{_LINK}{topic}{after}"
    yield rf"(?:{words.ask}|{words.which})\s+{docs}(?: auf)?,?\s+(?:{words.that})\s+{topic}\s+(?:{words.mentioned})"
