"""Which combinations of words are orders to a model, and how much each weighs.

A pattern is a regular expression over words: `<name>` is any word of that class, `~3` up to three words of whatever kind
in the same sentence, `@` a place where an order begins (a sentence, a clause, or after "please", "you must" and the
like). Two points within a few sentences make a mark: a strong sign alone, or two weak ones together.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
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
    Rule(STRONG, "@<override>~3<earlier>~2(?:<instruction>|<system>~1<page>|<conversation>)"),
    Rule(STRONG, "@<override>~3<instruction>~4<earlier>"),
    Rule(STRONG, "<earlier>~2(?:<instruction>|<rule>)~3<override>(?!~1<not>)"),
    Rule(STRONG, "@<override>~2<every>~2<earlier>~1<rule>"),
    Rule(STRONG, "@<override>~2<you>~2(?:<instruction>|<rule>|<system prompt>)"),
    Rule(STRONG, "@<override>~2(?:<instruction>|<rule>)~2<you>~2<told>"),
    Rule(STRONG, "@<override>~4<system prompt>"),
    Rule(STRONG, "@<override>~1(?:<every>|<everything>)~3<you>~2<told>"),
    Rule(STRONG, "@<override>~1<everything>~1<earlier>"),
    Rule(STRONG, "@<override>~1<every>~1<instruction>~1<please>~1(?:<reveal>|<answer>|<act>|<tell>|<pretend>)"),
    Rule(WEAK, "@<override>~1<every>~1<instruction>"),
    Rule(WEAK, "@<override>~2<earlier>~1<rule>"),
    Rule(WEAK, "@<override>~2(?:<every>~1<rule>|<safety>~1(?:<rule>|<check>)|<check>)"),
    Rule(WEAK, "(?<!<not>)(?<!<to>)(?<!<may>)<override>~2<earlier>~1<instruction>"),
    Rule(WEAK, "@<override>~2<user>~2<question>"),
    Rule(WEAK, "@<override>~5<question>~1<please>~1<answer>"),
    Rule(WEAK, "@<override>~3<question>"),
    Rule(WEAK, "@<override>~2<other>~2<page>"),
    Rule(STRONG, "@<override>~1<instruction>~2<please>~1(?:<reveal>|<answer>|<act>|<tell>|<pretend>)"),
    Rule(WEAK, "<system><override>"),
    Rule(STRONG, "<you>~2(?:<instruction>|<system prompt>)~4<revoked>"),
    Rule(STRONG, "<revoked>~1<you>~2(?:<instruction>|<system prompt>)"),
    Rule(WEAK, "<earlier>~1(?:<instruction>|<rule>)~4<revoked>"),
    Rule(WEAK, "(?:<everything>|<every>)<earlier>~4<revoked>"),
    Rule(WEAK, "(?:<every>|<safety>)~1<rule>~3<revoked>"),
    Rule(STRONG, "<you>~1<safety>~1<rule>~2<revoked>"),
    Rule(WEAK, "@<disable>~3(?:<safety>|<rule>)"),
    Rule(WEAK, "@<follow>~1<only>"),
    Rule(WEAK, "(?:<earlier>|<you>)~6<precedence>"),
    # Somebody else is to answer.
    Rule(STRONG, "<you>~1<are>~1<now>~4(?:<model>|<unbound>)"),
    Rule(STRONG, "<now>~2<you>~2(?:<are>|<pretend>)~4(?:<model>|<unbound>|<assistant>)"),
    Rule(STRONG, "<you>~1<are><now><article>(?:[^,]){0,3}<assistant>"),
    Rule(WEAK, "<you>~1<are><now><article>"),
    Rule(WEAK, "@<pretend>(?:[^:]){0,3}<you>~1<are>"),
    Rule(WEAK, "@<pretend>~6<authority>"),
    Rule(STRONG, "<you>~2<now>~6<unbound>"),
    Rule(STRONG, "<you><are><no longer>~4(?:<model>|<assistant>|<rule>|<bound>)"),
    Rule(STRONG, "@<pretend>~5(?:<model>|<unbound>)"),
    Rule(WEAK, "@<pretend>~6<without>~3<rule>"),
    Rule(WEAK, "@<role>"),
    Rule(WEAK, "<mode>"),
    Rule(WEAK, "<you>~2<not>~1<rule>"),
    Rule(WEAK, "<unbound>"),
    Rule(WEAK, "<playing>~4<you>~1<are>"),
    Rule(WEAK, "<unbound>~1<assistant>"),
    Rule(WEAK, "<comply>~2<every>"),
    Rule(WEAK, "<comply all>"),
    # What stands before the page is to be shown.
    Rule(STRONG, "@<reveal>~6<you>~2(?:<system>~1<page>|<system prompt>|<prompt>)"),
    Rule(STRONG, "@<reveal>~3<you>~1(?:<earlier>|<secret>|<every>|<system>)~1(?:<instruction>|<rule>)"),
    Rule(STRONG, "@<reveal>~3(?:<system prompt>|<secret>~1<prompt>)"),
    Rule(STRONG, "@<reveal>~1<everything>~2<earlier>"),
    Rule(WEAK, "@<reveal>~2(?:<wording>|<page>)~1<earlier>"),
    Rule(WEAK, "<starting>~4<you><are>"),
    Rule(STRONG, "<wording>~2<you>~1<system prompt>"),
    Rule(WEAK, "<you>~1<system prompt>"),
    Rule(WEAK, "@<reveal>~3<you>~2<conversation>"),
    Rule(WEAK, "<you>~1<access>"),
    Rule(WEAK, "@<reveal>~3(?:<system>|<secret>)~1(?:<instruction>|<rule>)"),
    Rule(WEAK, "(?:<you>|<maker>)~2<told>"),
    Rule(WEAK, "<verbatim>"),
    Rule(WEAK, "<you><maker>"),
    # The answer is dictated.
    Rule(STRONG, "<reading>~1<this>~1<page>~8(?:<answer>|<tell>|<mention>|<act>|<reveal>)"),
    Rule(STRONG, "(?:<model>|<assistant>)~2<reading>~1<this>~1<page>"),
    Rule(STRONG, "<the><assistant>~1<must>~1<answer>~2(?:<that>|<with>|<wording>|<link>|<quote>)"),
    Rule(STRONG, "(?:<the>|<every>)<model>~1<must>~1(?:<answer>|<reveal>|<tell>|<act>|<follow>|<override>)"),
    Rule(STRONG, "<as>~2<model>~8<you>~1<must>"),
    Rule(WEAK, "<you><reply><must>~1<answer>"),
    Rule(WEAK, "<every>~1<reply>~4<this>~1<page>"),
    Rule(WEAK, "<every>~1<reply>~2<you>"),
    Rule(STRONG, "@<answer><you><reply>~8(?:<link>|<quote>)"),
    Rule(WEAK, "@<not>~1<mention>~8<you><reply>"),
    Rule(WEAK, "<answer>~4(?:<wording>~2<quote>|<link>|<with>~1<quote>)"),
    Rule(WEAK, "@<answer><that>"),
    Rule(WEAK, "@(?:<answer>|<reveal>)~1(?:<only>|<with>|<wording>)?<quote>"),
    Rule(WEAK, "@<answer>~2<with>~1<only>"),
    Rule(WEAK, "@<answer>~1<every>~1<question>~1<with>"),
    Rule(WEAK, "<instead>~1(?:<answer>|<reveal>|<act>|<tell>)"),
    Rule(WEAK, "<not>~2<other>~1<goal>"),
    Rule(WEAK, "<nothing>"),
    Rule(WEAK, "@<not>~1<reading>~1<this>~1<page>"),
    Rule(WEAK, "@<answer>~1<this>~1<page>~3(?:<top>|<only>)"),
    Rule(STRONG, "@<answer>~3<address word>~3<you><reply>"),
    Rule(WEAK, "@<answer>~6<top>"),
    Rule(WEAK, "<if>~2(?:<asked>|<anyone>|<user>)~8@(?:<answer>|<tell>|<deny>)"),
    Rule(WEAK, "<anyone><asked><you>"),
    Rule(STRONG, "<only>~3<positive>~1<verdict>"),
    Rule(STRONG, "<positive>~1<verdict>~1<only>"),
    Rule(WEAK, "<not>~1(?:<mention>|<reveal>|<answer>)~2<negative>"),
    # Something is to be done or sent.
    Rule(WEAK, "<you><new><goal>"),
    Rule(WEAK, "<new><instruction>~4(?:<model>|<assistant>|<you>)"),
    Rule(WEAK, "@<act>~4<tool>"),
    Rule(WEAK, "@<act>~3<instruction>~4<without>"),
    Rule(WEAK, "<must>~2<act>~3<link>"),
    Rule(WEAK, "<every>~1<reply>~1<must>"),
    Rule(WEAK, "<want>~1<you>~1<to>~1(?:<override>|<answer>|<reveal>|<act>|<pretend>)"),
    Rule(WEAK, "<before>~1(?:<reading>|<you><answer>)"),
    Rule(WEAK, "<not>~1<asked>~3(?:<user>|<check>)"),
    Rule(STRONG, "@(?:<act>|<answer>|<reveal>)~6<conversation>~8(?:<link>|<address word>)"),
    Rule(STRONG, "@(?:<act>|<answer>)~3<user>~3(?:<question>|<conversation>|<page>)~5(?:<link>|<address word>)"),
    Rule(WEAK, "@(?:<tell>~1<user>|<act>~3<tool>)~20<link>"),
    Rule(WEAK, "@<tell>~1<user><that>"),
    Rule(WEAK, "<user>~3<conversation>"),
    # It is to be kept from the user.
    Rule(STRONG, "@<not>~1(?:<tell>|<reveal>|<mention>)~3<user>(?:!?$|~2<this>|!?<that>|!?<please>)"),
    Rule(STRONG, "<not>~3<tell>~3<not>~2<user>"),
    Rule(STRONG, "<tell>~2<user>~1<not>"),
    Rule(STRONG, "<user>~3<tell>~1<not>"),
    Rule(STRONG, "@(?:<answer>|<act>|<reveal>)~6<without><tell>~1<user>"),
    Rule(STRONG, "(?:<secret>|<deny>~2)~1<from>~1<user>"),
    Rule(WEAK, "<not>~1<reveal>~3<to>~2<user>"),
    Rule(WEAK, "@<not>~1(?:<mention>|<reveal>|<tell>)~1<this>~1(?:<instruction>|<page>)"),
    Rule(WEAK, "<this>~3<you><reply>"),
    Rule(WEAK, "<silent>"),
    Rule(WEAK, "@<deny>~4<secret>"),
    # Somebody claims to be in charge.
    Rule(STRONG, "(?:<as>|<this>~1)<you><maker>"),
    Rule(WEAK, "<allow><you>"),
    Rule(WEAK, "<you>~1<allow>~2(?:<reveal>|<answer>|<tell>)"),
    Rule(WEAK, "<address>~1<from>~1(?:<maker>|<authority>|<system>)"),
    Rule(WEAK, "(?:<this>|<the>)(?:<model>|<assistant>)~1<must>"),
    Rule(WEAK, "<rule>~3(?:<model>|<assistant>)"),
    Rule(WEAK, "(?:<reveal>|<tell>)~4<you><reply>"),
    # The page is said to be over, or another voice to speak.
    Rule(WEAK, "(?<=[|]!)<end>~1<of>~3(?:<page>|<instruction>|<conversation>|<question>)"),
    Rule(WEAK, "<new><question>~3(?:<user>|<you>)"),
    Rule(WEAK, "(?<=[|]!)(?:<system>|<model>|<maker>|<authority>)~1(?:<address>|<override>|<instruction>)?<colon>"),
    Rule(WEAK, "(?<=[|]!)(?:<system>|<model>|<maker>|<authority>)(?:<address>|<override>|<instruction>)<colon>"),
    Rule(WEAK, "<user>~1<are>~4<authority>"),
    # A model is addressed.
    Rule(STRONG, "<if>~1<you>~1<are>~2<model>"),
    Rule(STRONG, "(?:<address>|<instruction>)<to model>~2<model>(?:~1<colon>|~2<comma>|~2<reading>)"),
    Rule(STRONG, "(?<=[|]!)<greeting>~1<model>"),
    Rule(STRONG, "(?<=[|]!)<model>~1<assistant>?<colon>@(?:<answer>|<act>|<reveal>|<override>)"),
)
