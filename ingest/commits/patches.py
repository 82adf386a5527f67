"""What a change was about, from git's patch: the functions its hunks lie in or begin, and the words of its lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

MOST_FUNCTIONS = 40
MOST_WORDS = 160
_LONGEST_NAME = 80
_MOST_LINES = 4000  # of a patch whose words are counted; a vendored library says no more in a million
_LONGEST_LINE = 400

_HUNK = re.compile(rb"^@@ -\S+ \+\S+ @@ ([^\n]{1,400})", re.M)
_BEGUN = re.compile(
    rb"^[+-][ \t]*(?:(?:export|default|public|private|static|async|pub)[ \t]+)*"
    rb"(?:def|class|func|fn|function|struct|interface|enum|trait)[ \t]+([A-Za-z_]\w{0,79})",
    re.M,
)
_RECEIVER = re.compile(r"^func \([^)]*\) ")  # of a method in Go
_CALLED = re.compile(r"([A-Za-z_$~][\w$]*)\s*[(<]")
_NAMED = re.compile(
    r"\b(?:def|class|func|fn|function|struct|interface|enum|trait|impl|module|type)\s+([A-Za-z_$][\w$]*)"
)
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
_LINE = re.compile(rb"^[+-](?![+-]{2} )([^\n]{3,400})", re.M)
_SECRET = re.compile(rb"(?i)passw|secret|token|api.?key|private.?key|BEGIN |://[^/\s]*:[^/\s]*@")
_WORD = re.compile(rb"[A-Za-z]{3,24}")


def function_names(patch: bytes) -> list[str]:
    """Each once, in the order of the patch."""
    headers = (_name(found.decode("utf-8", "replace")) for found in _HUNK.findall(patch))
    begun = (found.decode() for found in _BEGUN.findall(patch))
    names = dict.fromkeys(name for each in (headers, begun) for name in each if 1 < len(name) <= _LONGEST_NAME)
    return list(names)[:MOST_FUNCTIONS]


def changed_words(patch: bytes) -> list[str]:
    """The words of lines that came or went, the most frequent first. No line that might tell a secret is among them."""
    counts: Counter[bytes] = Counter()
    for line in _lines(patch):
        counts.update(list(dict.fromkeys(word.lower() for word in _WORD.findall(line))))  # in order: no set
    return [word.decode() for word, _ in counts.most_common(MOST_WORDS)]


def _lines(patch: bytes) -> Iterator[bytes]:
    for number, found in enumerate(_LINE.finditer(patch)):
        if number == _MOST_LINES:
            return
        if not _SECRET.search(found[1]):
            yield found[1]


def _name(header: str) -> str:
    """`parse_date` of `static int parse_date(const char *text)`, `Store` of `class Store(Base):`; a heading whole."""
    if header.startswith("#"):
        return header.strip("# ")
    header = _RECEIVER.sub("func ", header)
    found = _NAMED.search(header) or _CALLED.search(header) or _IDENTIFIER.search(header)
    return found[found.lastindex or 0] if found else ""
