"""What a memory says that has one value at a time: where somebody lives, what a number is, when a meeting is.

"Anna lives in Kiel" and "Anna moved to Bonn" state one fact, `anna: home`, with two values. The one told last holds,
the other is kept and marked. Cautious: what may be true side by side (friends, trips, tastes) is no such fact, nor is
what is planned, asked, or said of "him". English only, so far; in other languages the older one is not marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from research.store import STOP_WORDS, normalize, stem
from research.text import SENTENCE_BREAK

_MOST = 8  # facts of a memory
_LONGEST = 2_000  # characters that are looked at
_LONGEST_SENTENCE = 300


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(stem, words.split()))


# Who it is about: the speaker, the user, or somebody by name; "my sister" and "Tom's sister" too, but not "she".
_NAME = r"[A-Z][\w-]{1,30}(?: [A-Z][\w-]{1,30}){0,2}"
_OWNER = rf"(?:[Mm]y|[Oo]ur|[Tt]he|(?:[Tt]he )?[Uu]ser['’]s|{_NAME}['’]s?)"
_WHO = rf"(?P<who>{_OWNER} (?:[a-z][\w-]{{1,20}} )??[a-z][\w-]{{1,20}}|I|[Ww]e|(?:[Tt]he )?[Uu]ser|{_NAME})"
_LATELY = r"(?:(?:just|recently|now|currently|finally|still|also|already|no longer|has|have|am|is|are|was|were|both) )*"
_VALUE = r"(?P<value>(?:[^.,;:!?()\n]|[.,:](?=\S)){1,80})"

_STATED = tuple(
    (fact, re.compile(f"{_WHO} {_LATELY}{pattern}"))
    for fact, pattern in (
        ("home", rf"(?:lives?|living|resides?|residing|based) {_LATELY}(?:in|at|on) {_VALUE}"),
        ("home", rf"(?:moved|relocated)(?: back)?(?: from [\w ]{{2,30}}?)? to {_VALUE}"),
        ("work", rf"(?:works?|working) {_LATELY}(?:at|for|as) {_VALUE}"),
        ("work", rf"(?:joined(?= [A-Z])|(?:started|hired|promoted)(?: working)? (?:at|as|by|to)) {_VALUE}"),
        ("work", rf"(?:got|took|accepted|started|found) (?:a )?(?:new )?(?:job|position|role) (?:at|as|with) {_VALUE}"),
        ("partner", rf"(?:dating|engaged to|married(?: to)?) {_VALUE}"),
        ("age", r"(?:turned )?(?P<value>\d{1,3})(?: years old\b|$)"),
        ("school", rf"(?:goes|go|going|attends?) to (?=[^.]*school|[^.]*universit|[^.]*kindergarten){_VALUE}"),
        ("team", rf"(?:plays? for|joined) (?=[^.]*\b(?:team|club)\b){_VALUE}"),
    )
)
# "The password is 1234", "Our standup was moved to 9:30", "my favourite colour is green", "the workshop is in room 3"
_POSSESSED = re.compile(
    rf"(?P<owner>{_OWNER}) (?P<what>(?:[\w'-]{{1,20}} ){{0,5}}?[\w'-]{{1,20}}) (?P<how>"
    r"(?:is|are)(?: now| currently| called| named)?(?: at| on| in| for| due| with)?"
    r"|(?:leaves|starts|begins|departs|takes place)(?: now)?(?: at| on| in)"
    r"|(?:(?:is|was|were|has been|got) )?(?:changed|moved|switched|postponed|rescheduled|pushed back|brought forward"
    rf"|renamed|raised|lowered|increased|reduced|cut)(?: from [\w:. ]{{1,30}}?)? to) {_VALUE}"
)
_CHANGED = re.compile(
    rf"{_WHO} {_LATELY}changed (?:my|our|the|his|her) (?P<what>(?:[\w-]{{1,20}} ){{0,3}}[\w-]+) to {_VALUE}"
)
# "prefers dark mode", "takes the 7:12 train": of those with one noun, one at a time
_HAS = re.compile(rf"{_WHO} {_LATELY}(?:prefers?|uses?|drives?|owns?|takes?) (?:an? |the |my )?{_VALUE}")
# "eats meat", "quit smoking", "does not drink coffee any more"
_HABIT = re.compile(
    rf"{_WHO} {_LATELY}(?P<no>(?:stopped|quit|gave up|no longer|never|not|do(?:es)?(?:n['’]t| not)) )?"
    r"(?P<what>(?:smok|drink|eat|lik|lov|hat|enjoy|support|allergic|vegetarian|vegan)\w*(?: [\w-]{1,20}){0,4}?)"
    r"(?: any ?more| any longer| these days| now| a day| every day)*$"
)
# Nouns of what one has one of; a figure, a time or a name as the value says so as well.
_SINGLE = _stems(
    """
    name nickname age birthday number phone mobile mail email address password passcode code pin username account key
    deadline date time start end price cost rent salary budget dose size weight height favourite favorite job title role
    boss manager doctor dentist lawyer teacher coach landlord roommate flatmate partner wife husband girlfriend
    boyfriend fiance fiancee car bike laptop bank insurance gym school university team version status goal capital owner
    lead maintainer branch language editor theme mode timezone meeting appointment flight train standup party wedding
    dinner exam interview venue location room office seat
    """
)
_SINGLE_OF_ALL = _stems("password passcode code pin username email address number deadline venue maintainer")
_VALUED = re.compile(r"\d|\b[A-Z][a-z]|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:noon|midnight|tomorrow)\b")
# Told quickly: without one of these there is nothing to look for.
_MAYBE = re.compile(
    r"\b(?:is|are|am|lives?|living|resid\w+|based|moved|relocated|work\w*|joined|started|hired|promoted|job|position|"
    r"role|dating|engaged|married|turned|years|goes|go|going|attends?|plays?|changed|prefers?|uses?|drives?|owns?|takes?|"
    r"smok|drink|eat|lik|lov|hat|enjoy|support|leaves|starts|begins|departs|was|were|has been|got)",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:if|would|could|should|might|(?-i:may)|maybe|perhaps|probably|wants?|wanted|hopes?|hoping|plans?|planning|"
    r"thinking|considering|dream\w*|wish\w*|will|going to|gonna|used to|almost|nearly|wonder\w*)\b|['’]d\b|\?",
    re.IGNORECASE,
)
_ENDED = re.compile(r"\b(?:no longer|not|never|any ?more|any longer)\b|n['’]t\b")
_TAIL = re.compile(
    r"\s+(?:and|but|because|since|so|which|who|where|when|while|after|before|with|now|again|any ?more|instead|last|"
    r"this|next|for (?:a|the|my|now)|these days|recently|yesterday|today)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_COUNT = re.compile(r"\d+|one|two|three|four|five|six|seven|eight|nine|ten|lot|much|mani")  # stems
_ABBREVIATED = re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof|St)\.")
_PRONOUNS = frozenset({"he", "she", "they", "it", "this", "that", "there", "here", "what", "you", "who", "which"})


def facts_in(text: str, speaker: str = "") -> dict[str, str]:
    """fact → value. What "I" says is said of the speaker."""
    plain = _ABBREVIATED.sub(r"\1", text[:_LONGEST]).replace("’", "'")
    plain = re.sub(r"\b(I|[Ww]e|[Yy]ou|[Tt]hey)'(?:m|re)\b", r"\1 am", re.sub(r"\b(\w+)'ve\b", r"\1 have", plain))
    found: dict[str, str] = {}
    for sentence in SENTENCE_BREAK.split(plain):
        for clause in sentence[:_LONGEST_SENTENCE].split("; "):
            if _MAYBE.search(clause) and not _UNSURE.search(clause):
                for fact, value in _facts(clause.strip(" .!"), normalize(speaker)):
                    found.setdefault(fact, value)
    return {fact: value for fact, value in list(found.items())[:_MOST] if value}


def _facts(clause: str, speaker: str) -> Iterator[tuple[str, str]]:
    ended = _ENDED.search(clause) is not None
    for fact, pattern in _STATED:
        for match in pattern.finditer(clause):
            who = _who(match["who"], speaker)
            if who and not who.startswith("the "):
                yield f"{who}: {fact}", _valued(match["value"], ended=ended)
    for match in _POSSESSED.finditer(clause):
        yield from _possessed(match, speaker, ended=ended)
    for match in _CHANGED.finditer(clause):
        yield _owned("my", match["what"], speaker), _valued(match["value"], ended=ended)
    for match in _HAS.finditer(clause):
        yield from _had(match, speaker, ended=ended)
    for match in _HABIT.finditer(clause):
        who = _who(match["who"], speaker)
        if who:
            words = [word for word in _content(match["what"]) if not _COUNT.fullmatch(word)]
            yield f"{who}: {' '.join(words)}", "no" if ended or match["no"] else "yes"


def _possessed(match: re.Match[str], speaker: str, *, ended: bool) -> Iterator[tuple[str, str]]:
    words, value = _content(match["what"]), match["value"]
    single = _SINGLE_OF_ALL if normalize(match["owner"]) == "the" else _SINGLE  # "the team is great" is an opinion
    changed = match["how"].endswith(" to")
    if words and (changed or single & set(words) or _VALUED.search(value)):
        yield _owned(match["owner"], match["what"], speaker), _valued(value, ended=ended)


def _had(match: re.Match[str], speaker: str, *, ended: bool) -> Iterator[tuple[str, str]]:
    who, words = _who(match["who"], speaker), _content(_TAIL.sub("", match["value"]))
    nouns = [word for word in words if word in _SINGLE]
    if who and nouns and len(words) > 1:
        yield f"{who}: {nouns[-1]}", _valued(match["value"], ended=ended)


def _owned(owner: str, what: str, speaker: str) -> str:
    """What belongs to somebody: "our standup" and "the standup" are one, and with nobody else there, so is "my"."""
    folded = normalize(owner)
    shared = folded in ("the", "our") or (not speaker and folded in ("my", "user's", "the user's"))
    return f"{'' if shared else _who(owner, speaker)}: {' '.join(_content(what))}"


def _who(said: str, speaker: str) -> str:
    """Who is meant, by the same word whoever says it; empty if that cannot be told."""
    folded = re.sub(r"'s?(?= |$)", "", normalize(said))
    folded = folded.removeprefix("the ") if folded.startswith("the user") else folded
    first, *others = folded.split()
    if any(word in _PRONOUNS or word in STOP_WORDS for word in others):
        return ""
    if first in ("i", "we", "user", "my", "our"):
        return " ".join([speaker or "i", *others])
    return "" if first in _PRONOUNS or (first in STOP_WORDS and first != "the") else folded


def _valued(value: str, *, ended: bool) -> str:
    words = _content(_TAIL.sub("", value))
    return ("not " if ended else "") + " ".join(words) if words else ""


def _content(text: str) -> list[str]:
    words = (word for word in re.findall(r"[^\W_]+", text) if word[0].isupper() or word not in STOP_WORDS)  # 3 May
    return [stem(normalize(word)) for word in words]
