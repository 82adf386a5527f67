"""Words around names of people, for `names.py` and `placeholders.py` (name_words.toml)."""

from __future__ import annotations

import tomllib
from pathlib import Path

_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
TITLES = frozenset[str](_WORDS["titles"].split())
PARTICLES = frozenset[str](_WORDS["particles"].split())
THINGS = frozenset[str](_WORDS["things"].split())
NOBODY = frozenset[str](_WORDS["nobody"].split())
AMBIGUOUS = frozenset[str](_WORDS["ambiguous"].split())
