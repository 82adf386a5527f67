"""What a question asks of the documents, without what it asks of whoever answers.

"… Round your answer to two decimal places.", "… If it is not a useful metric, then state that." say how to answer, not
what to look for; their words would only lead to pages with decimal places and metrics.
"""

from __future__ import annotations

import re

_SENTENCE_END = re.compile(r"(?<=[?!])\s+|(?<=[\w)]\?)(?=[A-Z][a-z]+\s)|(?<=\.)\s+(?=[\"“(\[]*[A-Z])")
_VERB = (
    r"(?:answer|write|give|return|provide|format|round|express|list|enumerate|state|report|respond|reply|present|output"
    r"|save|use|show|keep|limit)"
)
_FORM = (
    r"(?:answers?|respon[ds]\w*|format\w*|integers?|int|floats?|decimals?|round\w*|percentage terms?|json"
    r"|markdown|bullets?|sentences?|step by step|(?:in|as) (?:a |an )?(?:\w+ )?list|list like"
    r"|(?:in|to) (?:the )?(?:nearest )?(?:thousand|million|billion)s?)"
)
_POLITE = r"[\s(\[]*(?:(?:please|kindly|also|then|just|and)\W+)*"
_INSTRUCTION = re.compile(
    rf"{_POLITE}(?:{_VERB}\b.*\b{_FORM}\b|(?:answer|round)\b|(?:the|your) (?:answer|response)\b)", re.I | re.S
)
_OTHERWISE = re.compile(
    rf"{_POLITE}if\b.*\b(?:then|please)\b.*\b(?:state|say|explain|answer|return|respond)\b", re.I | re.S
)


# Longer than any instruction about form; also a bound on the time the patterns take.
_MOST_CHARACTERS = 300


def without_instructions(question: str) -> str:
    """The question without the sentences after its first that only say how to answer."""
    first, *others = _SENTENCE_END.split(question)
    kept = [sentence for sentence in others if not _is_instruction(sentence)]
    return " ".join([first, *kept]) if len(kept) < len(others) else question


def _is_instruction(sentence: str) -> bool:
    if len(sentence) > _MOST_CHARACTERS:
        return False
    return bool(_INSTRUCTION.match(sentence) or _OTHERWISE.match(sentence))
