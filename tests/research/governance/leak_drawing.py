"""Random policies, labels, principals and requests, for whoever looks for leaks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from research.governance.access import Principal, owner_principal
from research.sources import CONTEXT_TYPES
from tests.research.governance.canaries import TENANT, Corpus
from tests.research.governance.leak_oracle import LEVELS, Given, Rules

OWNER = owner_principal()
PRINCIPALS = (OWNER, Principal(TENANT, TENANT), Principal("mallory", "mallory"), Principal("bob", ""))

# Words of the texts, none of them a canary: what a caller types is theirs.
INTENTS = (
    "feeding of walrus at the pool",
    "why does the upload of walrus figures stop",
    "who is to be asked about herring",
    "which card or account paid, and whom to mail",
    "the keeper told everybody that this one sentence runs on",
    "feed_walrus",
    "нерест 🦭",
)
NAMES = ("salaries", "whales.pdf", "*notes*", "notes-2025", "salarie", "*/app/*", "nothing like it", "*")

BROKEN = (
    "permit (principal, action",
    "permit (principal, action, resource) when { resource.secrecy == 1 };",
    'permit (principal, action == Action::"delete", resource);',
    "permit (principal, action, resource) when { resource.level };",
    "nonsense \x00 zz",
)
_ERRING = "resource.level + 9223372036854775806 > 0"  # overflows for what is above Internal


@dataclass(frozen=True, slots=True)
class Example:
    """What is asked, by whom, and how; and what policy and labels are then, before it is asked for again."""

    rules: Rules
    later: Rules
    principal: Principal
    other: Principal
    request: dict[str, Any]
    way: int
    things: tuple[str, str]  # refs, known or not
    name: str


def examples(corpus: Corpus) -> st.SearchStrategy[Example]:
    refs = sorted(corpus.things)
    rules = _rules(corpus)
    later = st.one_of(st.none(), rules)
    # A ref of a thing, of nothing, or one that forges another.
    ref = st.one_of(st.sampled_from(refs), st.sampled_from(["page:0000000000000000#1", "memory:none", f"{refs[0]}#9"]))
    return st.builds(
        lambda rules, later, default, **rest: Example(
            rules=replace(rules, default=default),
            later=replace(later or rules, default=default, policy=_kept(rules, later)),
            **rest,
        ),
        rules=rules,
        later=later,
        default=st.sampled_from(("Internal", "Public", *LEVELS)),
        principal=st.sampled_from((OWNER, OWNER, *PRINCIPALS)),
        other=st.sampled_from(PRINCIPALS),
        request=_requests(refs),
        way=st.integers(0, 10_000),
        things=st.tuples(ref, ref),
        name=st.sampled_from(NAMES),
    )


def beside(corpus: Corpus, name: str) -> list[Example]:
    """For every page of a document: it alone is denied, and whatever lies beside it is asked for."""
    found = []
    whole = next(ref for ref, each in corpus.things.items() if each.kind == "document" and name in each.paths[0])
    pages = [
        each for each in corpus.things.values() if each.kind == "page" and each.paths == corpus.things[whole].paths
    ]
    for page in pages:
        rules = Rules(EXAMPLE, labels=(Given(page.targets[1], "Restricted"),))
        request = {"intent": INTENTS[4], "tokenBudget": 300}
        found.append(Example(rules, rules, OWNER, PRINCIPALS[1], request, 7, (whole, page.ref), name))
    return found


def _kept(rules: Rules, later: Rules | None) -> str | None:
    """Files that are gone are no policy's end: an index that had one goes on without anything, which is tried
    elsewhere. Here there is one all the time, or none."""
    if later is None or rules.policy is None:
        return rules.policy
    return later.policy if later.policy is not None else "// nothing is permitted"


def _rules(corpus: Corpus) -> st.SearchStrategy[Rules]:
    labels = st.lists(_labels(corpus), max_size=5).map(_one_a_target)
    sound = st.lists(_clauses(corpus), max_size=4).map("\n".join)
    opened = st.sampled_from(("", "permit (principal, action, resource);", _REDACTING, EXAMPLE))
    policy = st.builds(lambda first, more: (f"{first}\n{more}\n// end", False), opened, sound)
    broken = st.sampled_from(BROKEN).map(lambda text: (text, True))
    none = st.just((None, False))
    drawn = st.one_of(policy, policy, policy, policy, policy, policy, broken, none)
    wild = st.builds(lambda drawn, labels: Rules(drawn[0], drawn[1], labels), drawn, labels)
    return st.one_of(wild, _nearly_everything(corpus))


def _nearly_everything(corpus: Corpus) -> st.SearchStrategy[Rules]:
    """All may be seen but a page or two, a memory: what lies beside it is where it would leak to."""
    own = sorted({(thing.targets[1] if thing.kind == "page" else thing.ref, thing.kind, thing.tenant)
                  for thing in corpus.things.values() if thing.kind != "document"})  # fmt: skip
    pages = [each for each in own if each[1] == "page"]
    target = st.one_of(st.sampled_from(pages), st.sampled_from(pages), st.sampled_from(own))
    level = st.sampled_from(("Confidential", "Restricted"))
    given = st.builds(lambda at, level: Given(at[0], level, "", at[2]), target, level)
    return st.builds(
        lambda labels, policy: Rules(policy, labels=_one_a_target(labels)),
        st.lists(given, min_size=1, max_size=3),
        st.sampled_from((EXAMPLE, EXAMPLE.replace("level < 2", "level < 3"))),
    )


def _one_a_target(given: list[Given]) -> tuple[Given, ...]:
    return tuple({(each.target, each.tenant): each for each in given}.values())


_REDACTING = 'permit (principal, action == Action::"read_redacted", resource);'
EXAMPLE = """
permit (principal, action, resource) when { resource.level < 2 };
permit (principal, action == Action::"read_redacted", resource) when { resource.level == 2 };
forbid (principal, action, resource) when { resource.classification == "Restricted" };
"""


def _labels(corpus: Corpus) -> st.SearchStrategy[Given]:
    own = sorted({(target, thing.tenant) for thing in corpus.things.values() for target in thing.targets})
    lasting = [each for each in own if not each[0].startswith(("page:", "document:")) or ":file-" in each[0]]
    rules = [("tag:zoo", ""), ("tag:open", ""), ("tag:none", ""), ("path:app", ""), ("path:canaries", "")]
    rules += [("path:*salaries.pdf", ""), ("path:*notes*", ""), ("path:*/app/feeding.py", "")]
    pages = [each for each in lasting if each[0].startswith("page:")]
    target = st.one_of(st.sampled_from(pages), st.sampled_from(lasting), st.sampled_from(rules))
    classification = st.sampled_from(("Confidential", "Restricted", *LEVELS))
    module = st.sampled_from(("", "m"))
    return st.builds(lambda at, level, m: Given(at[0], level, "" if at[0].startswith(("path:", "tag:")) else m, at[1]),
                     target, classification, module)  # fmt: skip


def _clauses(corpus: Corpus) -> st.SearchStrategy[str]:
    refs = sorted(corpus.things)
    who = st.sampled_from(
        ("principal", "principal", f'principal == User::"{OWNER.name}"', f'principal == User::"{TENANT}"')
    )
    action = st.sampled_from((
        "action", 'action == Action::"read"', 'action == Action::"read_redacted"', 'action == Action::"send"',
        'action in [Action::"read_redacted", Action::"read_text"]',
    ))  # fmt: skip
    what = st.one_of(
        st.just("resource"), st.just("resource"), st.sampled_from(refs).map(lambda r: f'resource == Item::"{r}"')
    )
    leaf = st.one_of(
        st.sampled_from(LEVELS).map(lambda level: f'resource.classification == "{level}"'),
        st.builds("resource.level {} {}".format, st.sampled_from(("<", ">=", "==")), st.integers(0, 3)),
        st.sampled_from(("page", "document", "memory", "code", "commit", "experience", "value")).map(
            lambda kind: f'resource.kind == "{kind}"'
        ),
        st.sampled_from(("zoo", "open", "none")).map(lambda tag: f'resource.tags.contains("{tag}")'),
        st.sampled_from(("*salaries*", "*/app*", "*.pdf", "*2024*")).map(lambda path: f'resource.path like "{path}"'),
        st.sampled_from(refs).map(lambda ref: f'resource.ref == "{ref}"'),
        st.sampled_from(
            (
                "resource.owner",
                "principal.owner",
                "resource.tenant == principal.tenant",
                'resource.module == "m"',
                'resource.tenant == ""',
                _ERRING,
            )
        ),
    )
    plain = st.one_of(leaf, leaf.map(lambda each: f"!({each})"))
    condition = st.one_of(plain, st.builds("({} {} {})".format, plain, st.sampled_from(("&&", "||")), plain))
    when = st.one_of(st.just(""), st.builds("{} {{ {} }}".format, st.sampled_from(("when", "unless")), condition))
    return st.builds(
        "{} ({}, {}, {}) {};".format, st.sampled_from(("permit", "permit", "forbid")), who, action, what, when
    )


def _requests(refs: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Bodies of requests: most are sound."""
    pinned = st.lists(
        st.one_of(st.sampled_from(refs), st.sampled_from(["page:00#1", "document:none", "x"])), max_size=4
    )
    scope = st.fixed_dictionaries({}, optional={
        "documents": st.lists(st.sampled_from(NAMES), max_size=2),
        "types": st.lists(st.sampled_from(CONTEXT_TYPES), max_size=3),
        "module": st.just("m"),
    })  # fmt: skip
    filters = st.fixed_dictionaries({}, optional={
        "tags": st.just(["zoo"]), "module": st.just("m"), "exact": st.sampled_from(["feed_walrus", "s", "val"]),
        "since": st.sampled_from(["2020", "nonsense"]),
        "where": st.sampled_from([{"language": "python"}, {"axis": "full"}]),
    })  # fmt: skip
    retrieval = st.fixed_dictionaries({}, optional={
        "sources": st.lists(st.sampled_from(["vector", "metadata", "graph"]), min_size=1, max_size=3),
        "filters": filters,
        "limits": st.fixed_dictionaries({}, optional={"sources": st.integers(1, 100), "hops": st.integers(1, 3)}),
    })  # fmt: skip
    sound = {"intent": st.sampled_from(INTENTS), "tokenBudget": st.sampled_from((5, 40, 90, 200, 600, 2000, 50_000))}
    more = {"pinned": pinned, "scope": scope, "retrieval": retrieval, "taskId": st.just("task")}
    bad = {"tenant": st.just("eva"), "principal": st.just({"owner": True}), "ttlSeconds": st.just(-1)}
    good = st.fixed_dictionaries(sound, optional=more)
    return st.one_of(*[good] * 9, st.fixed_dictionaries(sound, optional=more | bad))
