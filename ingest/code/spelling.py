"""Identifiers as the words that people would say: `getCharPos` is "get character position".

Questions are asked in whole words; code is full of short ones. What is spelled out here stands beside what is written,
for full-text search and for the encoder.
"""

from __future__ import annotations

import re

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
SPELLED = {
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


def apart(name: str) -> str:
    """The words of an identifier as it writes them, in small letters."""
    return " ".join(_CAMEL.sub(" ", re.sub(r"[\W_]+", " ", name)).lower().split())


def spelled(name: str) -> str:
    """The same in whole words."""
    if name in _SPECIAL:
        return _SPECIAL[name]
    return " ".join(SPELLED.get(word, word) for word in apart(name).split())
