"""The tree of errors that `research/errors.py` draws is the tree there is, and all of its kinds are made alike."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import research
from research import errors
from research.errors import CtxError

ROOT = Path(__file__).parent.parent.parent
KINDS = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, CtxError)]
# What some kinds need beyond a message and a hint.
MORE = {"DocumentError": {"code": "damaged"}}

_BRANCH = re.compile(r"^ {4}(?P<stem>[│ ]*(?:[├└]── )?)(?P<name>[A-Z]\w+) +(?P<code>\d+)  \S")
_CLASS = re.compile(r"^ *class (\w+)\(([^()]*)\):", re.MULTILINE)


def _drawn() -> dict[str, tuple[str, int]]:
    """Each name in the docstring with the one it stands under and its exit code."""
    above: list[str] = []
    found = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := _BRANCH.match(line):
            depth = len(match["stem"]) // 4
            above = [*above[:depth], match["name"]]
            found[match["name"]] = (above[depth - 1] if depth else "Exception", int(match["code"]))
    return found


def _is_an_error(name: str, bases: dict[str, list[str]]) -> bool:
    return name == "CtxError" or any(_is_an_error(base, bases) for base in bases.get(name, []))


def test_the_tree_in_the_docstring_is_the_tree_there_is() -> None:
    assert _drawn() == {kind.__name__: (kind.__bases__[0].__name__, kind.exit_code) for kind in KINDS}


def test_no_kind_lives_elsewhere() -> None:
    homes: dict[str, str] = {}
    bases: dict[str, list[str]] = {}
    for path in (path for package in ("cli", "ingest", "research") for path in (ROOT / package).rglob("*.py")):
        for name, above in _CLASS.findall(path.read_text()):
            homes[name] = str(path.relative_to(ROOT))
            last = [base.strip().rpartition(".")[2] for base in above.split(",")]
            bases[name] = [base for base in last if base != name]  # ours may be called as a library's is
    kinds = {name for name in homes if _is_an_error(name, bases)}
    assert kinds == {kind.__name__ for kind in KINDS}
    assert {homes[name] for name in kinds} == {"research/errors.py"}


def test_every_kind_is_exported_and_takes_a_message_and_a_hint() -> None:
    for kind in KINDS:
        assert getattr(research, kind.__name__) is kind, kind
        assert kind.__name__ in research.__all__, kind
        made = kind("what happened", hint="what to type", **MORE.get(kind.__name__, {}))
        assert (str(made), made.message, made.hint) == ("what happened", "what happened", "what to type"), kind
        assert kind("what happened", **MORE.get(kind.__name__, {})).hint == "", kind
