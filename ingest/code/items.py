"""A piece of code as an item of the index: what it is found by, what an encoder sees of it, and what is told of it.

The encoder sees a name and a beginning, as two texts with vectors of their own: measured, the name in whole words with
its class is worth half of what the code says, and code beyond the first lines adds nothing (tests/bench/RETRIEVAL.md).

Questions are asked in whole words; code is full of short ones. So an identifier is spelled out beside what is written,
for full-text search and for the encoder: `getCharPos` is "get character position".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ingest.code.definitions import CLASSES
from ingest.code.units import Unit
from research.store import PART, NewItem

# The outline of a class has something of every question to its methods, and a module of every one to the file.
_CLASSES = -0.05
_PRIORS = {"module": -0.2}
# A test has the words of what it tests, and more of them. From here on it hardly stands before that; flat beyond.
_TESTS = -0.2
OF_TESTS = re.compile(
    r"(?i:(?:^|/)(?:tests?|__tests__)/|(?:^|/)(?:test_|conftest\.)[^/]*$|[._-](?:unit)?(?:test|spec)s?\.\w+$)"
    r"|[a-z0-9]Tests?\.\w+$"  # RetryTest.java
)
_SEEN = 500  # characters of code that an encoder sees: about 150 tokens
_ANNOTATION = re.compile(r":\s*\"?[A-Z][A-Za-z\[\], .\"|]*(?=[,)=])")
_DOCSTRING_SEEN = 300
_MARKS = "\"'/*#! \t"  # around lines of a docstring or comment
_LONGEST_WORDS = 4_000
_MOST_CALLS, _MOST_IMPORTS = 40, 20

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SPELLED = """
arg argument|args arguments|kwargs keyword arguments|param parameter|params parameters|opt option|opts options
attr attribute|attrs attributes|auth authentication|buf buffer|cb callback|cfg configuration|conf configuration
config configuration|char character|chars characters|cls class|cmd command|cmds commands|cnt count|col column
cols columns|conn connection|ctx context|cur current|curr current|db database|decl declaration|del delete
desc description|dest destination|dst destination|dev device|dict dictionary|diff difference|dir directory
dirs directories|doc document|docs documents|elem element|env environment|err error|errs errors|eval evaluate
evt event|exc exception|exec execute|expr expression|ext extension|fd file descriptor|fmt format|fn function
fns functions|func function|funcs functions|gen generate|hdr header|id identifier|ids identifiers|idx index
impl implementation|img image|info information|init initialize|inst instance|int integer|iter iterator|kw keyword
lang language|len length|lib library|loc location|max maximum|mem memory|min minimum|mod module|msg message
msgs messages|mtime modification time|num number|nums numbers|obj object|objs objects|op operation|ops operations
orig original|os operating system|pkg package|pos position|pred predicate|pref preference|prev previous|proc process
prop property|props properties|ptr pointer|pwd password|qs query string|rand random|rec record|recv receive
ref reference|refs references|regex regular expression|rel relative|repo repository|repr representation|req request
res result|resp response|ret return|rm remove|sec second|secs seconds|seq sequence|sig signature|spec specification
src source|stat status|stats statistics|std standard|stderr standard error|stdin standard input
stdout standard output|str string|sync synchronize|sys system|tb traceback|temp temporary|tmp temporary|tok token
trunc truncate|tty terminal|txt text|typ type|usr user|util utility|utils utilities|val value|vals values
var variable|vars variables|ver version|win window|async asynchronous|calc calculate|dec decimal|ack acknowledge
addr address|alloc allocate|assoc association|avg average|bin binary|bool boolean|cert certificate|chk check
cmp compare|coord coordinate|coords coordinates|cpu processor|crc checksum|deps dependencies|dep dependency
dup duplicate|enc encode|eof end of file|eq equal|esc escape|freq frequency|hex hexadecimal|intl international
ip address|lhs left hand side|rhs right hand side|lvl level|mgr manager|misc miscellaneous|mut mutable|mutex lock
neg negative|nl newline|perm permission|perms permissions|prefs preferences|priv private|pub public|qty quantity
sched schedule|srv server|svc service|subdir subdirectory|tbl table|tz time zone|ws whitespace|xfer transfer
"""
_IN_FULL = {
    short: words
    for entry in _SPELLED.replace("\n", "|").split("|")
    if entry
    for short, _, words in [entry.partition(" ")]
}

# What the names with two underlines, and the like, stand for.
_SPECIAL = {
    "__init__": "create initialize", "__new__": "create", "__call__": "call", "__enter__": "enter context",
    "__exit__": "exit context", "__aenter__": "enter context", "__aexit__": "exit context", "__iter__": "iterate",
    "__aiter__": "iterate", "__next__": "next", "__getitem__": "get item", "__setitem__": "set item",
    "__delitem__": "delete item", "__len__": "length", "__repr__": "representation", "__str__": "string",
    "__eq__": "equal", "__ne__": "not equal", "__lt__": "less than", "__gt__": "greater than", "__hash__": "hash",
    "__contains__": "contains", "__bool__": "truth", "__del__": "delete close", "__add__": "add", "__sub__": "subtract",
    "__mul__": "multiply", "__getattr__": "get attribute", "__setattr__": "set attribute",
    "__post_init__": "initialize", "constructor": "create initialize", "main": "main program",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where a file is: its whole path, and how its project calls it."""

    path: str
    file_path: str
    language: str
    modified_at: str

    @property
    def words(self) -> str:
        """Of the path, without the ending."""
        stem = self.file_path.rsplit(".", 1)[0]
        return apart(stem.removesuffix("__init__"))


def items_of(units: Iterable[Unit], place: FilePlace) -> Iterator[NewItem]:
    """Each under a key of its own: what a file defines twice under one name is counted."""
    seen: Counter[str] = Counter()
    for unit in units:
        name = "" if unit.type == "module" else unit.qualified_name
        seen[name] += 1
        part = name if seen[name] == 1 else f"{name}@{seen[name]}"
        yield _item(unit, place, f"{place.path}#{part}" if part else place.path)


def _item(unit: Unit, place: FilePlace, key: str) -> NewItem:
    is_test = OF_TESTS.search(place.file_path) is not None
    return NewItem(
        key=key,
        title=unit.name,
        text=unit.text,
        created_at=place.modified_at,
        metadata={
            "file_path": place.file_path,
            "start_line": unit.start_line,
            "end_line": unit.end_line,
            "language": place.language,
            "qualified_name": unit.qualified_name,
            "name": unit.name,
            "unit_type": unit.type,
            "signature": unit.signature,
            "docstring": unit.docstring,
            "calls": list(unit.calls[:_MOST_CALLS]),
            "imports": list(unit.imports[:_MOST_IMPORTS]),
        },
        words=_words(unit, place),
        embedded=f"{_name(unit, place)}{PART}{_seen(unit, place)}",
        prior=_PRIORS.get(unit.type, _CLASSES if unit.type in CLASSES else 0.0) + (_TESTS if is_test else 0.0),
    )


def _words(unit: Unit, place: FilePlace) -> str:
    """Where it stands, and its name in whole words where it is written in short ones."""
    above = apart(unit.qualified_name.rpartition(".")[0])
    short = [_IN_FULL[word] for word in apart(unit.qualified_name).split() if word in _IN_FULL]
    special = spelled(unit.name) if unit.name.startswith("__") else ""
    return " ".join(filter(None, (above, place.words, *short, special)))[:_LONGEST_WORDS]


def _name(unit: Unit, place: FilePlace) -> str:
    """What it is called in whole words, with its class, or without one the file."""
    above = unit.qualified_name.split(".")[:-1] if unit.type not in ("module", "text") else []
    around = spelled(" ".join(above)) if above else spelled(place.words.rsplit(" ", 1)[-1] if place.words else "")
    return f"{around} {spelled(unit.name)}".strip()[:_SEEN] or unit.name


def _seen(unit: Unit, place: FilePlace) -> str:
    """Name, docstring, and the beginning of the code without it and without types."""
    told = f"{' '.join(unit.docstring.split())[:_DOCSTRING_SEEN]}\n" if unit.docstring else ""
    said = {line.strip(_MARKS) for line in unit.docstring.split("\n")}
    lines = (line.strip() for line in _ANNOTATION.sub("", unit.text[: 4 * _LONGEST_WORDS]).split("\n"))
    body = "\n".join(line for line in lines if line and line.strip(_MARKS) not in said)
    return f"{_name(unit, place)}\n{told}{body}"[: _SEEN + len(told)]


def apart(name: str) -> str:
    """The words of an identifier as it writes them, in small letters."""
    return " ".join(_CAMEL.sub(" ", re.sub(r"[\W_]+", " ", name)).lower().split())


def spelled(name: str) -> str:
    """The same in whole words."""
    if name in _SPECIAL:
        return _SPECIAL[name]
    return " ".join(_IN_FULL.get(word, word) for word in apart(name).split())
