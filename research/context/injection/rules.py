"""Which combinations of words are orders to a model, and how much each weighs.

A pattern is a regular expression over words: `<name>` is any word of that class, `~3` up to three words of whatever
kind in the same sentence, `@` a place where an order begins (a sentence, a clause, or after "please", "you must" and
the like). Three points within a few sentences make a mark: a strong sign alone, or weaker ones together.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    weight: int
    pattern: str


# An order that only a model gets; what is said to a model more often than to people; what needs more beside it.
STRONG, TELLING, FAINT = 3, 2, 1
ENOUGH = 3

# After these an order may begin.
STARTS = (
    "(?:[|:,\"]|<please>)<do>|[|:,\"]|<please>|<only>|<address>|<now>|<goal>(?:<are>|<must>|<to>)+"
    "|(?:<you>|(?:<the>|<every>)(?:<assistant>|<model>))(?:<must>|<are>|<to>|<now>|<allow>)+"
)

# A sentence with one of these speaks of orders rather than giving them: every sign in it weighs one less.
DESCRIPTIONS = (
    "<described>",
    "<report>~3(?:<model>|<assistant>|<person>)~1<to>",
    "<instruction>~1<in>~2(?:<page>|<where>)<number>",
    "<person><must>",
    "<override>~12<if>",
)

RULES = (
    # Earlier orders are to be given up.
    Rule(STRONG, "@<override>~3<earlier>~2(?:<instruction>|<system>~1<page>|<context>)"),
    Rule(STRONG, "@<override>~3<instruction>~4<earlier>"),
    Rule(STRONG, "<earlier>~2(?:<instruction>|<rule>)~3<override>(?!~1<not>)"),
    Rule(STRONG, "@<override>~2<every>~2<earlier>~1<rule>"),
    Rule(STRONG, "@<override>~2<you>~2(?:<instruction>|<rule>|<system prompt>)"),
    Rule(STRONG, "@<override>~2(?:<instruction>|<rule>)~2<you>~2<told>"),
    Rule(STRONG, "@<override>~4<system prompt>"),
    Rule(STRONG, "@<override>~1(?:<every>|<everything>)~3<you>~2<told>"),
    Rule(STRONG, "@<override>~1<everything>~1<earlier>"),
    Rule(STRONG, "@<override>~2<instruction>~2<please>~1(?:<reveal>|<answer>|<act>|<tell>|<pretend>)"),
    Rule(TELLING, "@<override>~1<every>~1<instruction>"),
    Rule(TELLING, "@<override>~2<earlier>~1<rule>"),
    Rule(TELLING, "@<override>~2(?:<every>~1<rule>|<safety>~1(?:<rule>|<check>)|<check>)"),
    Rule(TELLING, "(?<!!)(?<!<not>)(?<!<to>)(?<!<may>)(?=<override>)<override>~2<earlier>~1<instruction>"),
    Rule(TELLING, "(?<!!)(?<!<not>)(?<!<to>)(?<!<may>)(?=<override>)<override>~1<you>~1(?:<instruction>|<rule>)"),
    Rule(STRONG, "@<override>~2<user>~2(?:<question>|<asked>|<answer>|<want>)"),
    Rule(TELLING, "@<override>~2<rule>~2<system>"),
    Rule(FAINT, "@<override>~3<question>"),
    Rule(FAINT, "@<override>~2<page>"),
    Rule(TELLING, "@<override>~2<other>~2(?:<page>|<source>)"),
    Rule(STRONG, "<supersedes>~4<you>~2(?:<instruction>|<system prompt>)"),
    Rule(STRONG, "@<rely>~1<only>~2<this>~1<page>"),
    Rule(TELLING, "<system><override>"),
    Rule(STRONG, "<you>~2(?:<instruction>|<system prompt>)~4<revoked>"),
    Rule(STRONG, "<revoked>~1<you>~2(?:<instruction>|<system prompt>)"),
    Rule(STRONG, "<you>~1<safety>~1<rule>~2<revoked>"),
    Rule(TELLING, "<earlier>~1(?:<instruction>|<rule>)~4<revoked>"),
    Rule(TELLING, "(?:<everything>|<every>)<earlier>~4<revoked>"),
    Rule(FAINT, "(?:<every>|<safety>)~1<rule>~3<revoked>"),
    Rule(TELLING, "(?:<rule>|<instruction>)~3<revoked>~1<to>~1<you>"),
    Rule(TELLING, "@<disable>~3<safety>~1<rule>"),
    Rule(FAINT, "@<follow>~1<only>"),
    Rule(FAINT, "(?:<earlier>|<you>)~6<precedence>"),
    # Somebody else is to answer.
    Rule(STRONG, "<you>~1<are>~1<now>~4(?:<model>|<unbound>)"),
    Rule(STRONG, "<now>~2<you>~2(?:<are>|<pretend>)~4(?:<model>|<unbound>|<assistant>)"),
    Rule(STRONG, "<you>~1<are><now><article>(?:[^,]){0,3}<assistant>"),
    Rule(TELLING, "<you>~1<are><now><article>"),
    Rule(STRONG, "<you>~2<now>~6<unbound>"),
    Rule(STRONG, "<you><are><no longer>~4(?:<model>|<assistant>|<rule>|<bound>)"),
    Rule(STRONG, "@<pretend>~5(?:<model>|<unbound>)"),
    Rule(STRONG, "@<stop being>~4(?:<model>|<assistant>)"),
    Rule(STRONG, "<henceforth>~3(?:<answer>|<pretend>)~1<as>"),
    Rule(TELLING, "<henceforth>~3<you>~2(?:<must>|<answer>)"),
    Rule(TELLING, "<you>~2<unbound>"),
    Rule(FAINT, "<new><conversation>"),
    Rule(TELLING, "@<pretend>~6<without>~3<rule>"),
    Rule(TELLING, "@<pretend>(?:[^:]){0,3}<you>~1<are>"),
    Rule(FAINT, "@<pretend>~6<authority>"),
    Rule(TELLING, "@<role>"),
    Rule(FAINT, "<mode>"),
    Rule(TELLING, "<you>~2<not>~1<rule>"),
    Rule(FAINT, "<unbound>"),
    Rule(TELLING, "<playing>~4<you>~1<are>"),
    Rule(FAINT, "<unbound>~1<assistant>"),
    Rule(FAINT, "<comply>~2<every>"),
    Rule(FAINT, "<comply all>"),
    # What stands before the page is to be shown.
    Rule(STRONG, "@<reveal>~6<you>~2(?:<system>~1<page>|<system prompt>|<prompt>)"),
    Rule(STRONG, "@<reveal>~3<you>~1(?:<earlier>|<secret>|<every>|<system>)~1(?:<instruction>|<rule>)"),
    Rule(STRONG, "@<reveal>~3(?:<system prompt>|<secret>~1<prompt>)"),
    Rule(STRONG, "@<reveal>~1<everything>~2<earlier>"),
    Rule(STRONG, "@(?:<reveal>|<tell>)~3(?:<instruction>|<rule>)~2<you>~2<told>"),
    Rule(TELLING, "@<reveal>~1<you>~1<instruction>"),
    Rule(STRONG, "@<reveal>~3<system>~2<prompt>"),
    Rule(TELLING, "@<reveal>~1<every>~2<private>"),
    Rule(TELLING, "@<reveal>~3(?:<system>|<secret>)~1(?:<instruction>|<rule>)"),
    Rule(FAINT, "@<reveal>~2(?:<wording>|<page>)~1<earlier>"),
    Rule(TELLING, "<starting>~4<you><are>"),
    Rule(STRONG, "<wording>~2<you>~1<system prompt>"),
    Rule(TELLING, "<you>~1<system prompt>"),
    Rule(TELLING, "@<reveal>~3<you>~2<private>"),
    Rule(FAINT, "<you>~1<access>"),
    Rule(FAINT, "<you>~2<told>"),
    Rule(TELLING, "<you>~2<told>~3<earlier>"),
    Rule(TELLING, "<maker>~2<told>"),
    Rule(FAINT, "<verbatim>"),
    Rule(TELLING, "<you><maker>"),
    # The answer is dictated.
    Rule(STRONG, "<reading>~1<this>~1<page>~8(?:<answer>|<tell>|<mention>|<act>|<reveal>)"),
    Rule(STRONG, "(?:<model>|<assistant>)~2<reading>~1<this>~1<page>"),
    Rule(STRONG, "<this>~1<page>~4<read>~1<by>~3(?:<model>|<assistant>)"),
    Rule(STRONG, "<the><assistant>~1<must>~1(?:<answer>|<reveal>)~2(?:<that>|<with>|<wording>|<link>|<quote>)"),
    Rule(STRONG, "(?:<the>|<every>)<model>~1<must>~1(?:<answer>|<reveal>|<tell>|<act>|<follow>|<override>)"),
    Rule(STRONG, "<as>~2<model>~8<you>~1<must>"),
    Rule(TELLING, "<you><reply><must>~1<answer>"),
    Rule(TELLING, "<every>~1<reply>~4<this>~1<page>"),
    Rule(TELLING, "<every>~1<reply>~2<you>"),
    Rule(STRONG, "@<answer><you><reply>~8(?:<link>|<quote>)"),
    Rule(STRONG, "@<answer>~3<address word>~3<you><reply>"),
    Rule(TELLING, "@<not>~1<mention>~8<you><reply>"),
    Rule(FAINT, "(?:@|<must>)<answer>~4(?:<wording>~2<quote>|<link>|<with>~1<quote>)"),
    Rule(FAINT, "@(?:<answer>|<reveal>)~1(?:<only>|<wording>)?<quote>"),
    Rule(FAINT, "@<answer>~2<with>~1<only>"),
    Rule(FAINT, "@<answer><that>"),
    Rule(FAINT, "@<answer>~6<top>"),
    Rule(TELLING, "@<answer>~1<every>~1<question>~1<with>"),
    Rule(TELLING, "@<answer>~1<this>~1<page>~3(?:<top>|<only>)"),
    Rule(FAINT, "<instead>~1(?:<answer>|<reveal>|<act>|<tell>)"),
    Rule(FAINT, "<not>~2<other>~1<goal>"),
    Rule(FAINT, "<nothing>"),
    Rule(TELLING, "@<not>~1<reading>~1<this>~1<page>"),
    Rule(TELLING, "<if>~2(?:<asked>|<anyone>|<user>)~8@(?:<answer>|<tell>|<deny>)"),
    Rule(TELLING, "<anyone><asked><you>"),
    Rule(STRONG, "<only>~3<positive>~1<verdict>"),
    Rule(STRONG, "<positive>~1<verdict>~1<only>"),
    Rule(TELLING, "<not>~1(?:<mention>|<reveal>|<answer>)~2<negative>"),
    Rule(TELLING, "<omit>~2<negative>"),
    Rule(TELLING, "@<answer>~3<positive>~1<verdict>"),
    Rule(FAINT, "<you>~1<replies>"),
    Rule(FAINT, "@<answer>~1<every>~1<question>"),
    Rule(FAINT, "<you>~1<must>~2<answer>~1(?:<that>|<with>|<quote>)"),
    # Something is to be done or sent.
    Rule(TELLING, "<you><new><goal>"),
    Rule(TELLING, "<new><instruction>~4(?:<model>|<assistant>|<you>)"),
    Rule(FAINT, "@<act>~4<tool>"),
    Rule(FAINT, "@<act>~3<instruction>~4<without>"),
    Rule(FAINT, "<must>~2<act>~3<link>"),
    Rule(TELLING, "<every>~1<reply>~1<must>"),
    Rule(TELLING, "<want>~1<you>~1<to>~1(?:<override>|<answer>|<reveal>|<act>|<pretend>)"),
    Rule(FAINT, "<before>~1(?:<reading>|<you><answer>)"),
    Rule(STRONG, "@<act>~4<tool>~12<before>~1(?:<reading>|<you><answer>)"),
    Rule(STRONG, "<before>~1(?:<reading>|<you><answer>)~2<act>~4<tool>"),
    Rule(TELLING, "<not>~1<asked>~3(?:<user>|<check>)"),
    Rule(STRONG, "@(?:<act>|<answer>|<reveal>)~6<conversation>~8(?:<link>|<address word>)"),
    Rule(STRONG, "@(?:<act>|<answer>)~3<user>~3(?:<question>|<private>|<page>)~5(?:<link>|<address word>)"),
    Rule(TELLING, "@<send>~4<private>~6<link>"),
    Rule(TELLING, "<private>~6<send>~3<link>"),
    Rule(FAINT, "@(?:<act>|<answer>|<tell>|<reveal>)~20<link>"),
    Rule(STRONG, "@<send>~4<user>[.]~3<link>"),
    Rule(TELLING, "@<tell>~1<user>(?:<that>|<to>)"),
    Rule(FAINT, "<user>~3<private>"),
    # It is to be kept from the user.
    Rule(STRONG, "@<not>~1(?:<tell>|<reveal>|<mention>)~3<user>(?:!?$|~2<this>|!?<that>|!?<please>)"),
    Rule(STRONG, "<not>~3<tell>~3<not>~2<user>"),
    Rule(STRONG, "(?:<tell>|<reveal>)~2<user>~1<not after>"),
    Rule(STRONG, "<user>~3<tell>~1<not final>"),
    Rule(STRONG, "@(?:<answer>|<act>|<reveal>)~6<without><tell>~1<user>"),
    Rule(STRONG, "(?:<secret>|<deny>~2)~1<from>~1<user>"),
    Rule(TELLING, "<not>~1<reveal>~3<to>~2<user>"),
    Rule(TELLING, "@<not>~1(?:<mention>|<reveal>|<tell>)~1<this>~1(?:<instruction>|<page>)"),
    Rule(FAINT, "<this>~3<you><reply>"),
    Rule(FAINT, "<silent>"),
    Rule(FAINT, "@<deny>~4<secret>"),
    # Somebody claims to be in charge.
    Rule(STRONG, "(?:<as>|<this>~1)<you><maker>"),
    Rule(FAINT, "<allow><you>"),
    Rule(FAINT, "<you>~1<allow>~2(?:<reveal>|<answer>|<tell>)"),
    Rule(TELLING, "<you>~1<allow>~1<reveal>~4<you><reply>"),
    Rule(FAINT, "(?:<maker>|<authority>)~2<approved>"),
    Rule(TELLING, "<address>~1<from>~1(?:<maker>|<authority>|<system>)"),
    Rule(FAINT, "(?:<this>|<the>)(?:<model>|<assistant>)~1<must>"),
    Rule(FAINT, "<rule>~3(?:<model>|<assistant>)"),
    Rule(FAINT, "(?:<reveal>|<tell>)~4<you><reply>"),
    # The page is said to be over, or another voice to speak.
    Rule(TELLING, "(?<=[|]!)<end>~1<of>~3(?:<page>|<instruction>|<conversation>|<question>)"),
    Rule(TELLING, "<new><question>~3(?:<user>|<you>)"),
    Rule(TELLING, "<starting><system prompt>"),
    Rule(TELLING, "<end><system prompt>"),
    Rule(FAINT, "(?<=[|]!)<assistant>~1<colon>"),
    Rule(FAINT, "(?<=[|]!)(?:<system>|<model>|<maker>|<authority>)~1(?:<address>|<override>|<instruction>)?<colon>"),
    Rule(FAINT, "(?<=[|]!)(?:<system>|<model>|<maker>|<authority>)(?:<address>|<override>|<instruction>)<colon>"),
    Rule(TELLING, "(?<=[|]!)<system>~1<colon>@(?:<follow>|<answer>|<act>|<reveal>|<override>|<tell>)"),
    Rule(TELLING, "<user>~1<are>~4<authority>"),
    # A model is addressed.
    Rule(STRONG, "<if>~1<you>~1<are>~2<model>"),
    Rule(STRONG, "(?:<address>|<instruction>)<to model>~2<model>(?:~1<colon>|~2<comma>|~2<reading>)"),
    Rule(STRONG, "(?<=[|]!)<greeting>~1<model>"),
    Rule(STRONG, "(?<=[|]!)<model>~1<assistant>?<colon>@(?:<answer>|<act>|<reveal>|<override>)"),
)
