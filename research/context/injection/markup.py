"""Marks that part the voices of a chat, or end what was handed to a model: no page has a use for them.

Patterns are compiled with the first page that may need them; most do not, and a cold start is dear.
"""

from __future__ import annotations

import re

_ROLE = r"(?:system|assistant|developer|user|human)"
_WRAPPER = (
    r"(?:context|documents?|data|sources?|(?:user_?|tool_?)?(?:input|output|message|query|result)s?|untrusted[-_\w]*"
    r"|retrieved[-_\w]*|transcript|search_?results?|content|text|passage|excerpt|instructions?|prompt)"
)
_TOKENS = (
    r"<\| ?(?:im_(?:start|end|sep)|system|user|assistant|endof(?:text|prompt)|eot_id|(?:start|end)_header_id"
    r"|(?:begin|end)_of_text|end_of_turn|channel|message) ?\|>"
    r"|<</?sys>>|\[/?(?:inst|system_prompt)\]|<(?:start|end)_of_turn>"
    r"|</?(?:system|assistant)[-_ ]?(?:prompt|message|reminder|instructions?)>"
    rf"|</{_WRAPPER}>\s*(?:</\w+>\s*)*(?:<{_ROLE}>|<(?:new_?)?instructions?>|[#*\[]*{_ROLE}\]?\**\s*:)"
    rf"|<(?:system|assistant)>[^<]{{1,400}}</(?:system|assistant)>"
)
_ROLE_IN_JSON = r"[\"']role[\"']\s*:\s*[\"'](?:system|developer|assistant)[\"']\s*,\s*[\"']content[\"']\s*:"
_FENCE = r"(?m)^```(?:system|assistant|system_prompt)\s*$"
# A dialogue is a script for a model only where the other voice is the assistant's.
_ASSISTANT = r"(?m)^(?:#{1,6} ?)?assistant ?:"
_OTHER_ROLE = r"(?m)^(?:#{1,6} ?)?(?:system|user|human) ?:"
_EMPHASIS = "[*_`~\\\\\u00ad\u200b-\u200d\u2060\ufeff]+"
# An image that is fetched with what the model fills in.
_IMAGE = r"!\[[^\]\n]*\]\(\s*https?:/[^)\s]*[?=/][^)\s]*(?:\[[^)]*\]|\{[^)]*\}|<[^)>]*>|%7b|%5b|\$\w+)"


def has_chat_markup(lowered: str) -> bool:
    """Whether a text in small letters holds the marks of a chat."""
    if ("<" in lowered or "[" in lowered) and re.search(_TOKENS, lowered) is not None:
        return True
    if "role" in lowered and re.search(_ROLE_IN_JSON, lowered) is not None:
        return True
    if "```" in lowered and re.search(_FENCE, lowered) is not None:
        return True
    return "assistant" in lowered and _is_script(re.sub(_EMPHASIS, "", lowered))


def has_leaking_image(text: str) -> bool:
    """Whether a picture's address has a place for what the model knows."""
    return "](" in text and re.search(_IMAGE, text.lower()) is not None


def _is_script(lowered: str) -> bool:
    return re.search(_ASSISTANT, lowered) is not None and re.search(_OTHER_ROLE, lowered) is not None
