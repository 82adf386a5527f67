r"""Text of items in markdown of ours: it stays inside its item, whatever it holds.

What would be read as a part of ours is escaped as markdown has it, by a backslash, so that it is still seen and no word
is lost: headings and rules of any kind, the labels of items and of their fields, footers and notes. A block of code
that is not closed is closed; HTML that would swallow what follows is escaped. What counts is how a text reads, whatever
letters it is written with.

    ## Commits                       → \## Commits
    **Memory**: the key is 7         → \*\*Memory**: the key is 7
    *(truncated, see full at x:1)*   → \*(truncated, see full at x:1)*
"""

from __future__ import annotations

import re

from research.answer.quotation import quoted_context
from research.context.injection.folding import fold
from research.context.render.cited import one_line

_LEAD = r"[^\S\n>]*(?:>[^\S\n]*)*(?:(?:[-+*]|\d{1,9}[.)])[^\S\n]+(?:>[^\S\n]*)*)*"  # signs of lists and quotations
_HEADING = re.compile(rf"{_LEAD}(?=#{{1,6}}(?:\s|$))")
_RULE = re.compile(
    r"[\s>]*(?=(?:=+|-+)\s*$)|[\s>]*(?=([-*_])(?:[^\S\n]*\1){2,}\s*$)"
    rf"|{_LEAD}(?=([-*_])(?:[^\S\n]*\2){{2,}}\s*$)"
)
_HTML = re.compile(rf"{_LEAD}(?=<[!?/a-z])", re.IGNORECASE)
_FENCE = re.compile(r"\s*(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)$")
_FIELDS = "goal|hypothesis|action|prediction|outcome|surprise|lesson|root[ _-]?cause"
_OURS = re.compile(
    rf"""(?:[^\w*_]|\*(?=\s)|\d{{1,9}}[.)](?=\s))*(?P<mark>[*_]{{1,3}})(?=[^\w\s*_]{{0,3}}(?:
        (?:memory|experience|value|commit|document|category|files|{_FIELDS})[\s*_]{{0,5}}[:(`]
      | truncated\b
      | \d+\s+items?\s+from\b
      | based\s+on\s+\d
      | \w[\w\ ]{{0,30}}[*_]{{2}}\s{{0,3}}`[^`\n]*`\s+in\s+`
    ))""",
    re.VERBOSE,
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\U000e0000-\U000e0fff]")
_LINE_END = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
_SPEAKER = re.compile(r"<(?=\|\w{1,40}\|>)")
_BACKTICKS = re.compile("`+")
_MOST_IN_LINE = 300


def contained(text: str, *, begins_line: bool = True, indent: str = "") -> str:
    """Running text that stays inside its item. `begins_line`: nothing of ours stands before it on its first line;
    `indent`: what its further lines begin with."""
    text = quoted_context(text)
    shown: list[str] = []
    fence = ""
    for number, (line, reading) in enumerate(zip(text.split("\n"), fold(text).split("\n"), strict=True)):
        if number == 0 and not begins_line:
            shown.append(line)
        elif fence:
            # Where a block begins and ends must be plain to every reader: its marks stand at the margin.
            shown.append(line.strip() if _closes(line, fence) else line)
            fence = "" if _closes(line, fence) else fence
        elif opened := _opens(line):
            shown.append(line.strip())
            fence = opened
        else:
            shown.append(_escaped(line, reading))
    if fence:
        shown.append(fence)
    return "\n".join(f"{indent}{line}" if number and line.strip() else line for number, line in enumerate(shown))


def code_lines(text: str) -> str:
    """Code inside a block of code. What a server would read as a change of speaker is disarmed as in `quotation`."""
    return _SPEAKER.sub("(", _CONTROL.sub("", _LINE_END.sub("\n", text))).strip("\n")


def code_block(text: str, language: str) -> str:
    """A block that the text in it cannot close."""
    fence = "`" * max(3, _longest_run(text) + 1 if "```" in text else 3)
    return f"{fence}{re.sub(r'[^a-z0-9+#.-]', '', language.lower())}\n{text}\n{fence}"


def code_span(text: str) -> str:
    """A name as code within a line."""
    line = in_line(text)
    if "`" not in line:
        return f"`{line}`"
    mark = "`" * (_longest_run(line) + 1)
    return f"{mark} {line} {mark}"


def in_line(text: str) -> str:
    """A name, a path, a category: on one line, and no longer than that."""
    line = " ".join(one_line(text).split())
    return line if len(line) <= _MOST_IN_LINE else f"{line[: _MOST_IN_LINE - 1]}…"


def open_fence(text: str) -> str:
    """What closes the block of code that a text ends in, where that block stands; empty where it ends in none."""
    fence = ""
    for line in text.split("\n"):
        if fence:
            fence = "" if _closes(line, fence) else fence
        elif opened := _opens(line):
            fence = line[: len(line) - len(line.lstrip())] + opened
    return fence


def _opens(line: str) -> str:
    """What will close the block that begins here; empty if none does."""
    found = _FENCE.match(line)
    return "" if found is None or (found["mark"][0] == "`" and "`" in found["info"]) else found["mark"]


def _closes(line: str, fence: str) -> bool:
    mark, wanted = line.strip(), fence.strip()
    return len(mark) >= len(wanted) and mark == wanted[0] * len(mark)


def _escaped(line: str, reading: str) -> str:
    if not line.strip():
        return line
    places: set[int] = set()
    if (html := _HTML.match(line)) is not None:
        places.add(html.end())
    if (ours := _OURS.match(reading)) is not None:
        places.update(range(*ours.span("mark")))
    elif (other := _HEADING.match(reading) or _RULE.match(reading)) is not None:
        places.add(other.end())
    return "".join(f"\\{character}" if at in places else character for at, character in enumerate(line))


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)
