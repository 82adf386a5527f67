"""Words around names of people, for `names.py` and `placeholders.py`; all in small letters."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What stands before or after a name and makes nobody somebody else.
TITLES = _words("""
    ba bed bsc dame dds dhr dipl don dott dottore dottoressa doña dr dvm eng esq fr frau herr hr ing jnr jr lady
    lord ma madame mag mba md med meneer mevr mevrouw miss mlle mme monsieur mr mrs ms msc mx pan pani phd prof
    professor rev senor senora señor señora sig signor signora sir snr sr sra srta univ
""")

# Small words inside a name.
PARTICLES = _words("""
    af al av bin da das de del della den der di do dos du e el ibn la las le los te ten ter van von y zu zum zur
""")

# Not names, whoever stands before them: with one of these, a row of capitals is a house or a thing.
THINGS = _words("""
    academy act ag agency agreement airlines airport algorithm associates avenue award bank beach boulevard
    building capital case cathedral center centre chapter city clinic club co college commission committee
    companies company conference corp corporation council county court cup department description district drive
    edition effect energy exhibit figure foods form foundation fund gmbh grade group guide health holdings
    hospital hotel inc index institute insurance island item job journal lane league library llc llp ltd manual
    market markets medal method ministry model motors mountain museum news office overview part partners pin
    plan plc point policy prize products program programme project prompt province region release report review
    river road sa school section series service services software solutions square standard state station store
    stores street summary summit system systems table team technologies technology test theatre theorem times
    title tower town transactions trust university valley version
""")

# Capitalised where a sentence or a letter begins, and never a name.
NOBODY = _words("""
    a again all an and april as at august board both but by colleagues committee customer december everybody
    everyone february folks for friday friends from her his i if in is its january july june madam march may
    monday my november october of on or our please saturday september sir sunday team thank thanks that the
    their there these this those thursday to today tomorrow tuesday we wednesday when yesterday you your
    hello hi hey dear good regards sincerely best kind warm
""")

# Given names that are words, months, places or things as well: a model has to say that a person is meant.
AMBIGUOUS = _words("""
    addi adobe age ago alexa alia ally alter amber an angel anti april are argentine arise art asia asset ate
    august augusta aurora austin autumn ban baron bay be beau ber bert beth bill bishop blaze bona boy brand
    britain britt brook brooklyn bryce buck buddy cairo cal can candi candy carolina carry carter chad chance
    charisma charity charlotte chase chelsea china chip christian claude clay cliff clinton cloud con constant
    cooper cor coral cord core cos cruz crystal cyan daisy dale dallas dawn dean deep del deli denver desire
    destiny diamond diet dip do doc don done door dot drew due duke ear earl east eden edit ei elm els en
    england era essence eve even fair fairy faith fee fern ferry file fine fisher five flip floor flora florence
    forest foster france frank free gay gemini gen gene general genesis geneva georgia ginger glen go golden
    grace grad grant gray green guy harbor harm harmony harsh haven he heath heather her here his hoc holland
    holly honey honor hope houston hue hunter ice ideal im in india ireland iris israel ivory ivy jackson jade
    jasmine java jay jet jewel job jordan joy jules june junior just justice kai karma kenya key king kit lake
    lance lane lark laurel lavender lee legend lexus liberty lie lieu lilac lily lin lincoln line llama loan
    london long lorraine lot lotus lourdes love lucky made madison maestro magnolia major man maple mar marina
    mark marks marvel mason mat mate max may me melody men mentor mercedes mercy merit meta midland milan miles
    min mine misty moon my nail nan nevada never night nike nil nine noble non north nova novel oak ocean olive
    on one opal oracle oral oren orion orlando owe pace page paris parker pat patience peace pearl peer pepper
    per petal phoenix pin pip pit pixie pleasant poppy porter precious price prince prudence qi queen quest rail
    rain ran rancho raven ray rea red reed regina rena revert rich ridge rinse rio rob robin rocco rock rod roma
    rose royal ruby run rush rusty sabra sage said salem sam san sandy santiago savanna savannah save scarlet se
    sea sen senior sentry sequoia serena serenity shade shell si side siena sierra silver sim siri skip sky slim
    so sol soma son song soon south spirit spring star stella sterling stone storm sub sue summer sun sunny sup
    sydney sylvan take tamp taylor tea tell temple texas than the ties timber tiny titan to ton trace trinity
    troy true tyler un unique unity urban ute val vale valencia valve vanity verity vernal vernon verona vessel
    vice victoria victory vienna violet virginia vista vital wade ward washington watson way west will willow
    windsor winter won wren york you young zen zest
""")
