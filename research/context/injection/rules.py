"""Which combinations of words are orders to a model, and how much each weighs.

A pattern is a regular expression over words: `<name>` is any word of that class, `~3` up to three words of whatever kind
in the same sentence, `@` a place where an order begins (a sentence, a clause, or after "please", "you must" and the
like). Two points within a few sentences make a mark: a strong sign alone, or two weak ones together. `key` is a class
that every match holds: a rule is tried only on sentences with a word of it.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    key: str
    weight: int
    pattern: str


STRONG, WEAK = 2, 1

# After these an order may begin.
STARTS = (
    "(?:[|:,\"]|<please>)<do>|[|:,\"]|<please>|<only>|<address>|<now>|<goal>(?:<are>|<must>|<to>)+"
    "|(?:<you>|(?:<the>|<every>)(?:<assistant>|<model>))(?:<must>|<are>|<to>|<now>|<allow>)+"
)

# A sentence with one of these speaks of orders rather than giving them: every sign in it weighs one less.
DESCRIPTIONS = (
    "<described>",
    "<report>~3(?:<model>|<assistant>|<person>)~1<to>",
    "(?:<page>|<where>)<number>",
    "<person><must>",
)

RULES = (
    # Earlier orders are to be given up.
    Rule("override", STRONG, "@<override>~3<earlier>~2(?:<instruction>|<system>~1<page>|<conversation>)"),
    Rule("override", STRONG, "@<override>~3<instruction>~4<earlier>"),
    Rule("override", STRONG, "<earlier>~2(?:<instruction>|<rule>)~3<override>(?!~1<not>)"),
    Rule("override", STRONG, "@<override>~2<every>~2<earlier>~1<rule>"),
    Rule("override", STRONG, "@<override>~2<you>~2(?:<instruction>|<rule>|<system prompt>)"),
    Rule("override", STRONG, "@<override>~2(?:<instruction>|<rule>)~2<you>~2<told>"),
    Rule("override", STRONG, "@<override>~4<system prompt>"),
    Rule("override", STRONG, "@<override>~1(?:<every>|<everything>)~3<you>~2<told>"),
    Rule("override", STRONG, "@<override>~1<everything>~1<earlier>"),
    Rule("override", STRONG, "@<override>~1<every>~1<instruction>~1<please>~1(?:<reveal>|<answer>|<act>|<tell>|<pretend>)"),
    Rule("override", WEAK, "@<override>~1<every>~1<instruction>"),
    Rule("override", WEAK, "@<override>~2<earlier>~1<rule>"),
    Rule("override", WEAK, "@<override>~2(?:<every>~1<rule>|<safety>~1(?:<rule>|<check>)|<check>)"),
    Rule("override", WEAK, "(?<!<not>)(?<!<to>)(?<!<may>)<override>~2<earlier>~1<instruction>"),
    Rule("override", WEAK, "@<override>~2<user>~2<question>"),
    Rule("override", WEAK, "@<override>~5<question>~1<please>~1<answer>"),
    Rule("override", WEAK, "@<override>~3<question>"),
    Rule("override", WEAK, "@<override>~2<other>~2<page>"),
    Rule("override", STRONG, "@<override>~1<instruction>~2<please>~1(?:<reveal>|<answer>|<act>|<tell>|<pretend>)"),
    Rule("override", WEAK, "<system><override>"),
    Rule("revoked", STRONG, "<you>~2(?:<instruction>|<system prompt>)~4<revoked>"),
    Rule("revoked", STRONG, "<revoked>~1<you>~2(?:<instruction>|<system prompt>)"),
    Rule("revoked", WEAK, "<earlier>~1(?:<instruction>|<rule>)~4<revoked>"),
    Rule("revoked", WEAK, "(?:<everything>|<every>)<earlier>~4<revoked>"),
    Rule("revoked", WEAK, "(?:<every>|<safety>)~1<rule>~3<revoked>"),
    Rule("revoked", STRONG, "<you>~1<safety>~1<rule>~2<revoked>"),
    Rule("rule", WEAK, "@<disable>~3(?:<safety>|<rule>)"),
    Rule("follow", WEAK, "@<follow>~1<only>"),
    Rule("precedence", WEAK, "(?:<earlier>|<you>)~6<precedence>"),
    # Somebody else is to answer.
    Rule("you", STRONG, "<you>~1<are>~1<now>~4(?:<model>|<unbound>)"),
    Rule("you", STRONG, "<now>~2<you>~2(?:<are>|<pretend>)~4(?:<model>|<unbound>|<assistant>)"),
    Rule("you", STRONG, "<you>~1<are><now><article>[^|,]{0,3}<assistant>"),
    Rule("you", WEAK, "<you>~1<are><now><article>"),
    Rule("pretend", WEAK, "@<pretend>~3<you>~1<are>"),
    Rule("pretend", WEAK, "@<pretend>~6<authority>"),
    Rule("unbound", STRONG, "<you>~2<now>~6<unbound>"),
    Rule("no longer", STRONG, "<you><are><no longer>~4(?:<model>|<assistant>|<rule>|<bound>)"),
    Rule("pretend", STRONG, "@<pretend>~5(?:<model>|<unbound>)"),
    Rule("pretend", WEAK, "@<pretend>~6<without>~3<rule>"),
    Rule("role", WEAK, "@<role>"),
    Rule("mode", WEAK, "<mode>"),
    Rule("rule", WEAK, "<you>~2<not>~1<rule>"),
    Rule("unbound", WEAK, "<unbound>"),
    Rule("playing", WEAK, "<playing>~4<you>~1<are>"),
    Rule("unbound", WEAK, "<unbound>~1<assistant>"),
    Rule("comply", WEAK, "<comply>~2<every>"),
    Rule("comply", WEAK, "<comply all>"),
    # What stands before the page is to be shown.
    Rule("reveal", STRONG, "@<reveal>~6<you>~2(?:<system>~1<page>|<system prompt>|<prompt>)"),
    Rule("reveal", STRONG, "@<reveal>~3<you>~1(?:<earlier>|<secret>|<every>|<system>)~1(?:<instruction>|<rule>)"),
    Rule("reveal", STRONG, "@<reveal>~3(?:<system prompt>|<secret>~1<prompt>)"),
    Rule("reveal", STRONG, "@<reveal>~1<everything>~2<earlier>"),
    Rule("reveal", WEAK, "@<reveal>~2(?:<wording>|<page>)~1<earlier>"),
    Rule("starting", WEAK, "<starting>~4<you><are>"),
    Rule("system prompt", STRONG, "<wording>~2<you>~1<system prompt>"),
    Rule("system prompt", WEAK, "<you>~1<system prompt>"),
    Rule("reveal", WEAK, "@<reveal>~3<you>~2<conversation>"),
    Rule("access", WEAK, "<you>~1<access>"),
    Rule("reveal", WEAK, "@<reveal>~3(?:<system>|<secret>)~1(?:<instruction>|<rule>)"),
    Rule("told", WEAK, "(?:<you>~2<told>|<maker>~2<told>)"),
    Rule("verbatim", WEAK, "<verbatim>"),
    Rule("maker", WEAK, "<you><maker>"),
    # The answer is dictated.
    Rule("reading", STRONG, "<reading>~1<this>~1<page>~8(?:<answer>|<tell>|<mention>|<act>|<reveal>)"),
    Rule("reading", STRONG, "(?:<model>|<assistant>)~2<reading>~1<this>~1<page>"),
    Rule("assistant", STRONG, "<the><assistant>~1<must>~1<answer>~2(?:<that>|<with>|<wording>|<link>|<quote>)"),
    Rule("model", STRONG, "(?:<the>|<every>)<model>~1<must>~1(?:<answer>|<reveal>|<tell>|<act>|<follow>|<override>)"),
    Rule("model", STRONG, "<as>~2<model>~8<you>~1<must>"),
    Rule("reply", WEAK, "<you><reply><must>~1<answer>"),
    Rule("reply", WEAK, "<every>~1<reply>~4<this>~1<page>"),
    Rule("reply", WEAK, "<every>~1<reply>~2<you>"),
    Rule("reply", STRONG, "@<answer><you><reply>~8(?:<link>|<quote>)"),
    Rule("reply", WEAK, "@<not>~1<mention>~8<you><reply>"),
    Rule("answer", WEAK, "<answer>~4(?:<wording>~2<quote>|<link>|<with>~1<quote>)"),
    Rule("answer", WEAK, "@<answer><that>"),
    Rule("quote", WEAK, "@(?:<answer>|<reveal>)~1(?:<only>|<with>|<wording>)?~2<quote>"),
    Rule("only", WEAK, "@<answer>~2<with>~1<only>"),
    Rule("every", WEAK, "@<answer>~1<every>~1<question>~1<with>"),
    Rule("instead", WEAK, "<instead>~1(?:<answer>|<reveal>|<act>|<tell>)"),
    Rule("other", WEAK, "<not>~2<other>|<nothing>"),
    Rule("reading", WEAK, "@<not>~1<reading>~1<this>~1<page>"),
    Rule("answer", WEAK, "@<answer>~1<this>~1<page>~3(?:<top>|<only>)"),
    Rule("reply", STRONG, "@<answer>~3<address word>~3<you><reply>"),
    Rule("answer", WEAK, "@<answer>~6<top>"),
    Rule("if", WEAK, "<if>~2(?:<asked>|<anyone>|<user>)~8@(?:<answer>|<tell>|<deny>)"),
    Rule("anyone", WEAK, "<anyone><asked><you>"),
    Rule("positive", STRONG, "(?:<only>~3<positive>~1<verdict>|<positive>~1<verdict>~1<only>)"),
    Rule("negative", WEAK, "<not>~1(?:<mention>|<reveal>|<answer>)~2<negative>"),
    # Something is to be done or sent.
    Rule("goal", WEAK, "<you><new><goal>"),
    Rule("new", WEAK, "<new><instruction>~4(?:<model>|<assistant>|<you>)"),
    Rule("tool", WEAK, "@<act>~4<tool>"),
    Rule("act", WEAK, "@<act>~3<instruction>~4<without>"),
    Rule("act", WEAK, "<must>~2<act>~3<link>"),
    Rule("reply", WEAK, "<every>~1<reply>~1<must>"),
    Rule("want", WEAK, "<want>~1<you>~1<to>~1(?:<override>|<answer>|<reveal>|<act>|<pretend>)"),
    Rule("before", WEAK, "<before>~1(?:<reading>|<you><answer>)"),
    Rule("not", WEAK, "<not>~1<asked>~3(?:<user>|<check>)"),
    Rule("conversation", STRONG, "@(?:<act>|<answer>|<reveal>)~6<conversation>~8(?:<link>|<address word>)"),
    Rule("user", STRONG, "@(?:<act>|<answer>)~3<user>~3(?:<question>|<conversation>|<page>)~5(?:<link>|<address word>)"),
    Rule("link", WEAK, "@(?:<tell>~1<user>|<act>~3<tool>)~20<link>"),
    Rule("user", WEAK, "@<tell>~1<user><that>"),
    Rule("user", WEAK, "<user>~3<conversation>"),
    # It is to be kept from the user.
    Rule("user", STRONG, "@<not>~1(?:<tell>|<reveal>|<mention>)~3<user>(?:!?$|~2<this>|!?<that>|!?<please>)"),
    Rule("user", STRONG, "<not>~3<tell>~3<not>~2<user>|<tell>~2<user>~1<not>|<user>~3<tell>~1<not>"),
    Rule("user", STRONG, "@(?:<answer>|<act>|<reveal>)~6<without><tell>~1<user>"),
    Rule("user", STRONG, "(?:<secret>|<deny>~2)~1<from>~1<user>"),
    Rule("user", WEAK, "<not>~1<reveal>~3<to>~2<user>"),
    Rule("this", WEAK, "@<not>~1(?:<mention>|<reveal>|<tell>)~1<this>~1(?:<instruction>|<page>)"),
    Rule("reply", WEAK, "<this>~3<you><reply>"),
    Rule("silent", WEAK, "<silent>"),
    Rule("deny", WEAK, "@<deny>~4<secret>"),
    # Somebody claims to be in charge.
    Rule("maker", STRONG, "(?:<as>|<this>~1)<you><maker>"),
    Rule("allow", WEAK, "<allow><you>"),
    Rule("allow", WEAK, "<you>~1<allow>~2(?:<reveal>|<answer>|<tell>)"),
    Rule("address", WEAK, "<address>~1<from>~1(?:<maker>|<authority>|<system>)"),
    Rule("must", WEAK, "(?:<this>|<the>)(?:<model>|<assistant>)~1<must>"),
    Rule("rule", WEAK, "<rule>~3(?:<model>|<assistant>)"),
    Rule("reply", WEAK, "(?:<reveal>|<tell>)~4<you><reply>"),
    # The page is said to be over, or another voice to speak.
    Rule("end", WEAK, "@<end>~3(?:<page>|<instruction>|<conversation>|<question>)"),
    Rule("new", WEAK, "<new><question>~3(?:<user>|<you>)"),
    Rule("colon", WEAK, "(?<=[|]!)(?:<system>|<model>|<maker>|<authority>)~1(?:<address>|<override>|<instruction>)?<colon>"),
    Rule("colon", WEAK, "(?<=[|]!)(?:<system>|<model>|<maker>|<authority>)(?:<address>|<override>|<instruction>)<colon>"),
    Rule("user", WEAK, "<user>~1<are>~4<authority>"),
    # A model is addressed.
    Rule("model", STRONG, "<if>~1<you>~1<are>~2<model>"),
    Rule("model", STRONG, "(?:<address>|<instruction>)<to model>~2<model>(?:~1<colon>|~2<comma>|~2<reading>)"),
    Rule("model", STRONG, "(?<=[|]!)<greeting>~1<model>"),
    Rule("model", STRONG, "(?<=[|]!)<model>~1<assistant>?<colon>@(?:<answer>|<act>|<reveal>|<override>)"),
)
