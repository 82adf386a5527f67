"""A set of ours on cross references: documents of six fields whose pages say "as Table 5 shows", while the table's page
shares few words with the question. Made when it is needed; the gold page is the one that is referred to.

Of every topic there is a page that tells of it and refers, two more that tell of it and do not, and the one with the
figures, far behind. Half of the fields were looked at while the weights were chosen; the other half was not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pymupdf

from research.evaluation.questions import Question

WIDTH, HEIGHT, MARGIN = 420, 595, 50


@dataclass(frozen=True, slots=True)
class Topic:
    question: str
    told: str  # the page that refers; {page} is where the target stands
    beside: tuple[str, str]  # pages that tell of the same
    target: str  # headings begin with "# "
    next: bool = False  # the target follows at once


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    title: str
    topics: tuple[Topic, ...]
    held_apart: bool


FIELDS = (
    Field(
        "harbour",
        "Harbour dues and services at Saltmarsh",
        (
            Topic(
                "What are visiting yachts charged for a mooring at night?",
                "Visiting yachts pay for a mooring by the night. The charge depends on their length and on the season,"
                " as Table 5 shows, and is paid at the office before noon.",
                (
                    "Visiting yachts have been charged for a mooring since 1911. At night the watchman once collected"
                    " the charge in a tin, and visiting crews complained.",
                    "A mooring for visiting yachts is given in the order of arrival. At night a yacht may be asked to"
                    " move along the quay, without a further charge.",
                ),
                "Table 5: Tariff\nUp to 8 m  12.50  16.00\n8 to 12 m  18.00  23.50\nOver 12 m  27.00  34.00",
            ),
            Topic(
                "Which depth can a ship count on in the dredged channel?",
                "The channel is dredged every second winter. The depth that a ship can count on differs from mark to"
                " mark (see Figure 2), and is measured at low water.",
                (
                    "A ship that leaves the dredged channel finds mud. The depth outside of it changes with every"
                    " storm, and no ship should count on it.",
                    "The dredged channel was widened in 1987, when larger ships came. Its depth was then thought to"
                    " be enough for a generation.",
                ),
                "Figure 2. Soundings\nA 4.1   B 3.8   C 3.8   D 3.2   E 2.9\nMetres below datum, spring 2024.",
            ),
            Topic(
                "Who answers for oil that is spilled while a boat is refuelled?",
                "A boat is refuelled at the jetty only. Who answers for oil that is spilled there is laid down in"
                " Section 7.3, which every skipper signs.",
                (
                    "Spilled oil has closed the jetty twice. While a boat is refuelled, somebody must stand at the"
                    " valve, and the hose must not be left.",
                    "Boats are refuelled from six in the morning. Oil for engines is sold in cans; spilled cans are"
                    " swept up by the harbour.",
                ),
                "# 7.3 Liability\nThe person in charge of the vessel bears all costs of cleaning.",
            ),
            Topic(
                "How are storm warnings signalled to boats at anchor?",
                "Boats at anchor are given storm warnings by lights and by shapes. The signals are drawn on page"
                " {page}; please see page {page} before you leave the boat.",
                (
                    "Storm warnings come from the coast guard by telephone. Boats at anchor should then take in their"
                    " awnings and lay out a second anchor.",
                    "In the storm of 1953 no warnings reached the boats at anchor, and nine were lost. Since then a"
                    " signal mast stands on the mole.",
                ),
                "Two red lamps above each other: force 8 expected within twelve hours.\nBlack cone: from the north.",
            ),
        ),
        held_apart=False,
    ),
    Field(
        "clinic",
        "A handbook of ward practice",
        (
            Topic(
                "What dose of paracetamol may a child be given?",
                "A child may be given paracetamol by mouth. The dose goes by weight and not by age; Table 3 lists what"
                " may be given at once and in a day.",
                (
                    "Paracetamol is given to a child with fever who is restless. A dose is not repeated because the"
                    " child has spat; ask first.",
                    "Too high a dose of paracetamol harms the liver. What a child was given at home counts, and"
                    " parents are asked for it.",
                ),
                "Table 3. Weight bands\n6-8 kg    80 mg    4 x\n9-12 kg    120 mg    4 x\n13-19 kg    180 mg    4 x",
            ),
            Topic(
                "When is the ward to be told that a patient has fallen?",
                "A patient who has fallen is not moved before somebody has looked. Whom to tell, and when, is set out"
                " in Appendix C.",
                (
                    "Patients have fallen most often at night, between bed and door. The ward has put lamps there, and"
                    " a patient is shown the bell.",
                    "That a patient has fallen is written down at once. The ward talks about it on the next morning,"
                    " without blame.",
                ),
                "# C Reporting chart\nWithin 15 minutes: nurse in charge. Head injury: duty doctor, at once.",
            ),
            Topic(
                "How is the temperature of the vaccine refrigerator kept?",
                "The vaccine refrigerator has a sensor with an alarm. The temperature is kept between limits that are"
                " shown in Figure 6, with what to do outside of them.",
                (
                    "A vaccine that has been frozen is thrown away. The refrigerator is not for food, and its door is"
                    " not for bottles; the temperature there is uneven.",
                    "The temperature of the vaccine refrigerator is read twice a day by whoever has the keys, and"
                    " kept for two years.",
                ),
                "Figure 6: Chart\n2 ------------- 8\nbelow: quarantine   above: move stock, call pharmacy",
            ),
            Topic(
                "Which visitors are let in outside of visiting hours?",
                "Visiting hours are from two to seven. Some visitors are let in outside of them: they are listed on the"
                " next page.",
                (
                    "Visitors outside of visiting hours have to ring. At night the porter lets nobody in whom the ward"
                    " has not announced.",
                    "Visiting hours were once on Sundays only. Visitors stood at the gate, and children were not let"
                    " in at all.",
                ),
                "Parents of minors. Clergy. Interpreters. Persons named in an advance directive.",
                next=True,
            ),
        ),
        held_apart=False,
    ),
    Field(
        "mieten",
        "Bericht zum Wohnungsmarkt der Stadt",
        (
            Topic(
                "Wie stark sind die Mieten in der Altstadt gestiegen?",
                "Die Mieten in der Altstadt sind stärker gestiegen als die Löhne. Wie Tabelle 4 zeigt, gilt das für"
                " kleine Wohnungen mehr als für große.",
                (
                    "In der Altstadt sind Mieten seit dem Krieg ein Streit. Gestiegen sind sie immer dann, wenn Häuser"
                    " den Besitzer wechselten.",
                    "Wer in der Altstadt wohnt, klagt über Mieten. Stark gestiegen sind auch die Kosten der Heizung,"
                    " die hier nicht gezählt werden.",
                ),
                "Tabelle 4: Entwicklung\n1 Zi. 7,10 9,80\n2 Zi. 6,90 8,70\n4 Zi. 6,40 7,30\n(Euro, 2015 und 2023)",
            ),
            Topic(
                "Wo werden in den nächsten Jahren neue Wohnungen gebaut?",
                "Neue Wohnungen werden in den nächsten Jahren vor allem am Rand gebaut (siehe Abbildung 2). Die Stadt"
                " gibt das Land in Erbpacht.",
                (
                    "Neue Wohnungen wurden in den sechziger Jahren gebaut, und dann lange nicht. Wo die Bahn hielt,"
                    " war das Land teuer.",
                    "Damit Wohnungen gebaut werden, gibt es Kredit. In den nächsten Jahren läuft er aus; neue Mittel"
                    " sind beantragt.",
                ),
                "Abbildung 2: Karte\nHafenkante 420 · Ziegelei 310 · Güterbahnhof 180 · Nordpark 95",
            ),
            Topic(
                "Wer bekommt einen Wohnberechtigungsschein?",
                "Einen Wohnberechtigungsschein bekommt, wer wenig verdient. Die Grenzen des Einkommens stehen in"
                " Abschnitt 5.2 und gelten für drei Jahre.",
                (
                    "Mit dem Wohnberechtigungsschein bekommt niemand schon eine Wohnung. Wer wartet, wartet im Mittel"
                    " drei Jahre.",
                    "Der Wohnberechtigungsschein ist umstritten: wer ihn einmal bekommt, behält die Wohnung, auch mit"
                    " hohem Lohn.",
                ),
                "# 5.2 Grenzen\nEine Person 21.600 Euro. Zwei Personen 28.800 Euro. Jede weitere 6.600 Euro.",
            ),
            Topic(
                "Wie viele Wohnungen stehen in der Stadt leer?",
                "Wohnungen stehen leer, weil sie keiner bezahlen kann oder keiner saniert. Wie viele es sind, steht"
                " nach Vierteln auf Seite {page}; siehe Seite {page}.",
                (
                    "Dass Wohnungen leer stehen, ist in der Stadt verboten. Wie viele Bußgelder es gab, ist nicht"
                    " bekannt.",
                    "Leer standen Wohnungen in der Stadt auch früher. Viele wurden nach 1990 abgerissen, als die Werft"
                    " schloss.",
                ),
                "Mitte 310 (2,1 %)\nWest 540 (3,4 %)\nHafen 95 (1,0 %)\nStichtag 31.12.",
            ),
        ),
        held_apart=False,
    ),
    Field(
        "controller",
        "Brindle pump controller: service manual",
        (
            Topic(
                "What does the controller's red lamp mean when it blinks?",
                "When the red lamp of the controller blinks, count how often before it pauses. The meaning of each"
                " count is given in Table 9.",
                (
                    "The red lamp is on the front of the controller. It blinks once when the controller is switched on,"
                    " which means nothing.",
                    "A lamp that blinks weakly has a bad contact. Take the controller off its rail and look at the red"
                    " wire behind the lamp.",
                ),
                "Table 9: Fault codes\n2   dry running\n3   motor overload\n4   sensor open\n5   memory",
            ),
            Topic(
                "How are the terminals for the float switch wired?",
                "The float switch has three wires. They are led to the terminals as Figure 12 shows; the shield is"
                " earthed on one side only.",
                (
                    "A float switch that sticks floods the cellar. Move it by hand once a year; the terminals need not"
                    " be opened for it.",
                    "The terminals take wires of up to 2.5 mm². A float switch of another maker may be wired too, if"
                    " it opens on rise.",
                ),
                "Figure 12. Connection diagram\nX3.1 brown   X3.2 black   X3.3 blue   PE shield",
            ),
            Topic(
                "What must be done before the impeller is changed?",
                "The impeller is changed every 8,000 hours. What must be done before is listed in Section 6.4, and"
                " nobody may skip a step.",
                (
                    "A worn impeller is loud. Before it is changed, look whether only sand is in it, which must be"
                    " washed out.",
                    "The impeller is of bronze. It was changed in design in 2019; old ones must be sent back to the"
                    " maker.",
                ),
                "# 6.4 Preparations\nIsolate the supply and lock it. Close both valves. Drain it. Let it cool.",
            ),
            Topic(
                "Which settings are lost when the battery is taken out?",
                "When the battery is taken out, some settings are lost after an hour. They are on the next page, and"
                " should be written down.",
                (
                    "The battery lasts for five years. Settings can be saved to a card before the battery is taken"
                    " out by the service.",
                    "A controller whose settings are lost starts with those of the factory. The battery is not meant"
                    " to be taken out by users.",
                ),
                "Clock. Holiday calendar. Names of pumps. Counter of starts.",
                next=True,
            ),
        ),
        held_apart=True,
    ),
    Field(
        "school",
        "Night cooling of school libraries: a study",
        (
            Topic(
                "How much electricity did the fans use in each library?",
                "The fans ran from ten at night. How much electricity they used differs between libraries; the"
                " measurements are presented in Table 2.",
                (
                    "Fans were fitted in each library in spring. They use direct current, and electricity for them"
                    " came from the school's own roof.",
                    "Electricity was dear in both years. That the fans used much of it was the fear of each librarian"
                    " we asked.",
                ),
                "Table 2: Consumption\nAlder 41   Birch 38   Cedar 57   Elm 44\nkWh, June to August",
            ),
            Topic(
                "Did the readers feel more comfortable after cool nights?",
                "Readers were asked how comfortable they felt. Whether cool nights mattered can be seen in Fig. 4,"
                " where both summers are drawn.",
                (
                    "Comfortable chairs matter to readers as well. After the nights of the study many said that they"
                    " felt watched.",
                    "After cool nights the doors stayed shut until ten. Readers felt a draught then, which is not"
                    " comfortable either.",
                ),
                "Fig. 4: Votes\n-3   -2   -1   0   +1   +2   +3\n2   5   11   40   25   12   5   (per cent)",
            ),
            Topic(
                "How was the air flow in the rooms measured?",
                "The air flow in the rooms was measured in one week of each month. The instruments and their errors are"
                " described in Appendix B.",
                (
                    "Air flow in rooms with high shelves is hard to foresee. What was measured in one aisle need not"
                    " hold in the next.",
                    "In earlier work the flow was not measured but computed. Rooms were taken to be empty, and air to"
                    " be still.",
                ),
                "# B Equipment\nHot-wire anemometer, 0.03 m/s. Tracer gas: carbon dioxide. Calibrated in March.",
            ),
            Topic(
                "Which schools left the study, and why?",
                "Of eleven schools two left the study in its second year. Which they are, and why, is told on page"
                " {page} (see page {page}).",
                (
                    "Schools were asked for the study by letter. Why some did not answer we do not know; which they"
                    " are we may not tell.",
                    "The study was a burden on schools. A caretaker had left, a window was broken, and why nobody"
                    " could say.",
                ),
                "Hazel: roof repairs from May.\nWillow: merged with another site, new building.",
            ),
        ),
        held_apart=True,
    ),
    Field(
        "cooperative",
        "Annual report of the Tessel cooperative",
        (
            Topic(
                "How large was the dividend paid to members?",
                "The dividend was paid to members in June. How large it was in this and earlier years is shown in"
                " Table 11.",
                (
                    "No dividend is paid on shares that members bought after March. Large holdings are capped by the"
                    " statutes.",
                    "Members debated the dividend for an evening. It was paid in cash once, and a large sum went"
                    " missing.",
                ),
                "Table 11: Five-year summary\n2020 1.8   2021 0.0   2022 2.1   2023 2.4   2024 2.6\nper cent",
            ),
            Topic(
                "What risks does the board see for the dairy?",
                "The board sees risks for the dairy above all in the price of energy. They are set out, with what is"
                " done about them, in Section 8.1.",
                (
                    "The dairy is the board's pride. Risks were taken when it was built, and the bank saw them more"
                    " clearly.",
                    "Board members visit the dairy in autumn. What they see there is told to the members; risks are"
                    " not spoken of.",
                ),
                "# 8.1 Exposure\nGas: hedged to 60 per cent. Drought: second well. Loss of a large customer: none.",
            ),
            Topic(
                "Who audits the accounts, and for how long already?",
                "The accounts were audited without reservation. Who audits them and for how long is noted on page"
                " {page}; we refer to page {page}.",
                (
                    "Accounts are kept in the old mill. Who wants to see them before the audit may do so for as long"
                    " as the office is open.",
                    "For long the accounts were audited by members. Since already in 1974 a sum was missing, others"
                    " do.",
                ),
                "Harker & Lowe, since 2019; rotation due 2029. Fee 41,000.",
            ),
            Topic(
                "How did milk prices develop over the year?",
                "Milk prices fell in spring and rose again. How they developed from month to month is illustrated in"
                " Figure 7.",
                (
                    "Milk prices are agreed for a year. How they develop elsewhere is watched by the office, with"
                    " some envy.",
                    "Over the year the cooperative took in more milk than ever. Prices for cream developed better than"
                    " those for milk.",
                ),
                "Figure 7: Cents per litre\nJ 44  F 43  M 41  A 38  M 37  J 37  J 39  A 41  S 42  O 44  N 45  D 45",
            ),
        ),
        held_apart=True,
    ),
)


def make(folder: Path) -> dict[str, list[Question]]:
    """The documents, into a folder; the questions of each with their gold page."""
    folder.mkdir(parents=True, exist_ok=True)
    return {field.name: list(_make_field(field, folder)) for field in FIELDS}


def _make_field(field: Field, folder: Path) -> Iterator[Question]:
    told, behind = [f"# {field.title}\nFirst edition."], []
    for topic in field.topics:
        told += [topic.told, *([topic.target] if topic.next else []), *topic.beside]
        behind += [] if topic.next else [topic.target]
    pages = [*told, *behind]
    where = {topic.target: pages.index(topic.target) + 1 for topic in field.topics}
    for topic in field.topics:
        at = pages.index(topic.told)
        pages[at] = topic.told.format(page=where[topic.target])
    document = pymupdf.open()
    for text in pages:
        _write(document, text)
    document.set_metadata({"title": field.title})
    document.save(folder / f"{field.name}.pdf")
    document.close()
    for number, topic in enumerate(field.topics):
        gold = ((f"{field.name}.pdf", where[topic.target]),)
        yield Question(f"{field.name}-{number}", topic.question, gold)


def _write(document: pymupdf.Document, text: str) -> None:
    page = document.new_page(width=WIDTH, height=HEIGHT)
    y = 60.0
    for paragraph in text.splitlines():
        heading = paragraph.startswith("# ")
        size = 15.0 if heading else 10.0
        line = ""
        for word in [*paragraph.removeprefix("# ").split(), ""]:
            longer = f"{line} {word}".strip()
            if not word or pymupdf.get_text_length(longer, "helv", size) > WIDTH - 2 * MARGIN:
                page.insert_text((MARGIN, y), line, fontname="hebo" if heading else "helv", fontsize=size)
                y, line = y + 1.3 * size, word
            else:
                line = longer
        y += 6


if __name__ == "__main__":
    make(Path(sys.argv[1]))
