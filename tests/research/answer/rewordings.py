"""Rules that put a sentence into other words and keep its meaning. Their words are their own, not the check's."""

from __future__ import annotations

import random
import re

SPELT = "one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
NUMBER = re.compile(r"(?<![\w.,:-])\d[\d,]*(?:\.\d+)?(?![\w:-]|\.\d)")
SPELT_NUMBER = re.compile(rf"(?<!-)\b(?:{'|'.join(SPELT[1:])})\b(?! (?:hundred|thousand|million))")

# Words that may be put for others in nearly any sentence.
_OTHER_WORDS = dict(
    line.strip().split(" > ")
    for line in """
    about > roughly/also > in addition/began > started/begins > starts/bought > purchased/buy > purchase/company > firm
    costs > expenses/employees > workers/every > each/fell > dropped/get > receive/gets > receives/help > assist
    kept > retained/large > big/may > can/must > has to/need > require/needs > requires/often > frequently
    paid > remunerated/rose > went up/show > demonstrate/shows > demonstrates/small > little/used > employed
    within > inside/yearly > annual/because > since/before > prior to/after > following/nobody > no one/only > solely
    stands > is located/whole > entire/increase > rise/increased > rose/decreased > declined/provide > supply
    provides > supplies/such as > like/customers > clients/additional > extra/obtain > get/ensure > make sure
    approximately > around/include > comprise/includes > comprises/required > needed/receive > get/choose > select
    chosen > selected/checked > verified/replaced > exchanged/telephone > phone/people > persons/told > informed
    due to > owing to/in order to > to
    """.strip()
    .replace("\n", "/")
    .split("/")
)
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_PLAIN_BEGINNINGS = frozenset("The A An This These It They We You All Most Each Every".split())  # noqa: SIM905
_LEADS = ("According to the document,", "The source states that", "It is reported that", "As the text says,")
_LEADING_CLAUSE = re.compile(
    r"((?:When|If|After|Before|In|At|On|During|Since|For|Because|Although|While|Under) [^,;:]{8,90}), ([^;:]{12,})\."
)
_CLOSING_CLAUSE = re.compile(r"([A-Z][^;:,]{15,}) ((?:when|if|because|although|unless|until) [^;:,]{10,})\.")
_ADVERB = re.compile(
    r" (?:also|very|quite|often|usually|generally|typically|always|carefully|directly|significantly) (?=[a-z])"
)
_PASSIVE = re.compile(
    r"((?:The|A|An|Our|Your|This|These) [\w -]{3,40}) (?:is|are|was|were) (\w+ed) by ((?:the|a|an|our) [\w -]{3,40})\."
)


def _other_word(sentence: str, chance: random.Random) -> str:
    known = [word for word in _OTHER_WORDS if re.search(rf"\b{word}\b", sentence)]
    for word in chance.sample(known, min(2, len(known))):
        sentence = re.sub(rf"\b{word}\b", _OTHER_WORDS[word], sentence, count=1)
    return sentence


def _other_number(sentence: str, chance: random.Random) -> str:
    def other(match: re.Match[str]) -> str:
        text = match.group()
        if text.isdigit() and 2 <= int(text) <= 12:
            return SPELT[int(text) - 1]
        return text.replace(",", "")

    said = NUMBER.sub(other, sentence)
    said = re.sub(r"(?<=\d) ?%", " percent", said) if "%" in said else said.replace(" per cent", "%")
    if said == sentence:
        said = SPELT_NUMBER.sub(lambda match: str(SPELT.index(match.group()) + 1), sentence)
    return said


def _other_date(sentence: str, chance: random.Random) -> str:
    def american(match: re.Match[str]) -> str:
        return f"{match[2]} {match[1]}{',' + match[3] if match[3] else ''}"

    said = re.sub(rf"\b(\d{{1,2}}) ({_MONTHS})\b( \d{{4}})?", american, sentence)
    return said if said != sentence else re.sub(rf"\b({_MONTHS}) (\d{{1,2}}), (\d{{4}})\b", r"\2 \1 \3", sentence)


def _contracted(sentence: str, chance: random.Random) -> str:
    said = re.sub(r"\b(is|are|was|were|does|do|did|should|would|could) not\b", r"\1n't", sentence)
    said = re.sub(r"\bcannot\b", "can't", said)
    return re.sub(r"\b([Ww]e|[Tt]hey|[Yy]ou) are\b", r"\1're", said)


def _other_order(sentence: str, chance: random.Random) -> str:
    """A clause before the main one goes behind it, or the other way round."""
    if match := _LEADING_CLAUSE.fullmatch(sentence):
        return f"{_capital(match[2])} {_small(match[1])}."
    match = _CLOSING_CLAUSE.fullmatch(sentence)
    if match and match[1].split(maxsplit=1)[0] in _PLAIN_BEGINNINGS:
        return f"{_capital(match[2])}, {_small(match[1])}."
    return sentence


def _attributed(sentence: str, chance: random.Random) -> str:
    if sentence.split(maxsplit=1)[0] not in _PLAIN_BEGINNINGS | {"In", "If", "No"}:
        return sentence
    return f"{chance.choice(_LEADS)} {_small(sentence)}"


def _without_adverb(sentence: str, chance: random.Random) -> str:
    return _ADVERB.sub(" ", sentence, count=1)


def _active(sentence: str, chance: random.Random) -> str:
    match = _PASSIVE.fullmatch(sentence)
    return f"{_capital(match[3])} {match[2]} {_small(match[1])}." if match else sentence


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _small(text: str) -> str:
    return text[0].lower() + text[1:]


REWORDINGS = (
    _other_word,
    _other_word,
    _other_number,
    _other_date,
    _contracted,
    _other_order,
    _attributed,
    _without_adverb,
    _active,
)
