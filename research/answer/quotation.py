"""Text of documents as a model gets it: quoted in blocks of its own, which it cannot close, and never as anything else.

    <source id="1" name="crisis.pdf" page="3">
    …
    </source>

What would end the block, begin another, or change the speaker is disarmed by a round bracket, so that it is still seen
and no word is lost: `</source>` in a text reads `(/source>`, `<|im_end|>` reads `(|im_end|>`. A number in square
brackets would look like a citation of ours; it gets round ones.
"""

from __future__ import annotations

import re

from research.context.injection.folding import fold
from research.context.injection.headers import neutralize_headers
from research.context.render.cited import one_line
from research.models import SourceDocument

_ANGLES = "<＜﹤‹〈〈⟨❬❮˂ᐸ"
_GAP = r"(?:[^\w<]|_){0,3}"
_TAG = re.compile(rf"<(?:[^\w<]|_){{0,8}}{_GAP.join('source')}")
_AS_ANGLE = str.maketrans(dict.fromkeys(_ANGLES, "‹"))  # `fold` takes away what stands in pointed brackets as a tag
# The marks by which servers tell who speaks: they read them in a message's text as well.
_SPEAKERS = re.compile(
    r"<(?=\s?[|｜])"
    r"|<(?=/?(?:s|bos|eos|pad|unk|mask|cls|sep|image|audio|video|img|vision|think|tool_\w+|function_\w+|__media__"
    r"|(?:start|end|begin)_of_\w+)>)"
    r"|<(?=</?sys>>)"
    r"|\[(?=/?(?:inst|system_prompt|available_tools|tool_calls|tool_results|tool_content|img|think)\])",
    re.IGNORECASE,
)
_CITATION = re.compile(r"(?<!\w)[\[［【〔](\s*\d{1,4}(?:\s*[,;–-]\s*\d{1,4})*\s*)[\]］】〕]")
_LINE_END = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
# Control characters, halves of characters, and those that carry text which nobody sees.
_UNSEEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\U000e0000-\U000e0fff]")


def source_block(source: SourceDocument, number: int, text: str) -> str:
    """A source under its number; with a mark, if its text is suspicious. What is no page says what it is."""
    name = one_line(source.filename).replace('"', "'").replace("<", "(").replace(">", ")")
    mark = f' suspicious="{" ".join(source.suspicious)}"' if source.suspicious else ""
    what = f'name="{name}" page="{source.page}"' if source.kind == "page" else f'kind="{source.kind}" name="{name}"'
    return f'<source id="{number}" {what}{mark}>\n{quotation(text)}\n</source>'


def quotation(text: str) -> str:
    """A document's text that stays inside its block and cites nobody."""
    return _CITATION.sub(r"(\1)", neutralize_headers(_contained(text).strip()))


def quoted_context(text: str) -> str:
    """A text with citation headers, as a `ResearchContext` has it; the headers stay."""
    return _contained(text).strip()


def plain_question(text: str) -> str:
    """A question as a message has it: the user's own words, which may have been copied from anywhere."""
    return _contained(text).strip()


def _contained(text: str) -> str:
    text = _UNSEEN.sub("", _LINE_END.sub("\n", text))
    text = _SPEAKERS.sub("(", text)
    if not any(angle in text for angle in _ANGLES):
        return text
    folded = fold(text.translate(_AS_ANGLE))
    places = {match.start() for match in _TAG.finditer(folded)}
    return "".join("(" if at in places else character for at, character in enumerate(text)) if places else text
