"""What stands around the name of a part in a question: frames, kinds of documents, small words, in several languages.

All words in lower case and without accents, as `analyzer.normalize` leaves them.
"""

from __future__ import annotations

from collections.abc import Mapping

# What asks for something in a document. "What is RAPTOR?" is still a name.
ASKING = frozenset(
    """
    how why when where whose does do did can could should must may might will would many much
    wieviel wieviele warum wann wo wohin darf kann muss soll combien comment pourquoi quand
    cuanto cuantos cuanta cuantas cuando donde como quanto quanti quante quanta quando dove come quantos quantas onde
    hoeveel waarom wanneer mag moet
    """.split()  # noqa: SIM905
)

# The first word and the last one of a question that asks for a part around the document's name.
FRAMES: Mapping[tuple[str, str], str] = {
    ("what", "about"): "summary",
    ("whats", "about"): "summary",
    ("fasse", "zusammen"): "summary",
    ("fass", "zusammen"): "summary",
    ("vat", "samen"): "summary",
    ("waar", "over"): "summary",
    ("what", "conclude"): "conclusion",
    ("what", "concludes"): "conclusion",
    ("what", "concluded"): "conclusion",
    ("how", "conclude"): "conclusion",
    ("when", "written"): "date",
    ("when", "made"): "date",
    ("when", "created"): "date",
    ("when", "signed"): "date",
    ("when", "updated"): "date",
    ("wann", "geschrieben"): "date",
    ("wann", "verfasst"): "date",
    ("how", "structured"): "contents",
    ("how", "organised"): "contents",
    ("how", "organized"): "contents",
    ("wie", "aufgebaut"): "contents",
    ("wie", "gegliedert"): "contents",
}

SECTIONS = frozenset(
    """
    section sections chapter item abschnitt kapitel chapitre seccion capitulo sezione capitolo secao hoofdstuk paragraaf
    """.split()  # noqa: SIM905
)

# Kinds of documents: they help to tell which one is meant, and need not stand in its name.
DOCUMENTS = frozenset(
    """
    paper papers preprint article report handbook manual guide guidebook document doc docs documentation pdf study
    book booklet ebook brochure leaflet flyer letter memo memorandum presentation slide slides slidedeck deck slideshow
    talk lecture keynote thesis dissertation publication filing contract notes minutes newsletter specification
    whitepaper survey opinion judgment judgement ruling magazine catalogue catalog scan release analysis assessment
    review tutorial essay poster transcript proposal prospectus
    aufsatz aufsatzes artikel artikels bericht berichts berichtes handbuch handbuchs handbuches anleitung leitfaden
    leitfadens dokument dokuments studie buch buches broschure brief briefs prasentation folien vortrag vortrags
    arbeit dissertation veroffentlichung vertrag vertrags gutachten gutachtens protokoll protokolls betriebsanleitung
    bedienungsanleitung
    rapport manuel guide etude livre brochure lettre diapositives these memoire publication contrat
    articulo informe manual guia documento estudio libro folleto carta presentacion diapositivas tesis
    publicacion contrato
    articolo relazione rapporto manuale guida studio libro opuscolo lettera presentazione tesi pubblicazione contratto
    artigo relatorio estudo livro folheto carta apresentacao tese publicacao contrato
    verslag handleiding boek presentatie proefschrift scriptie onderzoek overeenkomst
    """.split()  # noqa: SIM905
)

# What a kind of document may have before it, and its name need not.
KINDS_OF_KINDS = frozenset(
    """
    annual quarterly monthly yearly final technical research scientific white press user student staff employee training
    official original whole entire full short long new latest
    """.split()  # noqa: SIM905
)

# What else may stand in a question for a part: function words, and words of asking.
SMALL = frozenset(
    """
    give show tell list find get want need read please kindly say says said state states stated explain describe quick
    quickly short brief briefly concise whole entire full complete main final overall part page pages text name names
    know let look present presents according us one mean means called whats whos like
    der die das den dem des ein eine einen einem einer eines und oder in im am an auf aus bei mit nach von vom zu zum
    zur fur uber ist sind war was wer wie wo welche welcher welches wann wurde hat haben es er sie ich mir mich bitte
    zeig zeige nenne gib kurz ganze diese dieses dieser diesem steht lautet heisst fasse fass zusammen
    le la les l un une des du de d et ou en dans sur par pour avec est sont qui que quoi quel quelle quels quelles quand
    a ete ce cet cette ces il elle moi me s donne montre s'il vous plait fait faire
    el los las una unos unas del y o con es son quien quienes cual cuales cuando fue se al lo su sus este esta estos por
    para sobre dame muestra favor haz hazme un
    il lo gli i uno di da al alla allo ai agli nello dei degli delle della dello dell nel nella negli nelle sul sulla
    sullo sui sugli sulle sull dal dalla dallo dai dagli dalle dall all e ed con per su chi che
    cosa quale quali quando sono stato stata e' fammi dammi mostra questo questa questi
    os as um uma do da dos das no na nos nas ou com por para quem qual quais quando foi sao o seu sua este esta me faca
    mostre
    het een van voor met op te en of is zijn was wie wat waar welke wanneer heeft dit dat deze mij geef toon gaat vat
    samen over
    """.split()  # noqa: SIM905
)

# The same in scripts without spaces, longest first.
UNSPACED_DOCUMENTS = "论文 報告書 报告 手册 文档 文件 文章 説明書 論文 文書 書類 資料 レポート マニュアル 文献".split()  # noqa: SIM905
UNSPACED_SMALL = """
    这篇 这份 请问 是什么 给我 帮我 一下 什么 有哪些 哪些 ください について 教えて ですか とは
    この その です ます して した 请 的 是 吗 了 中 里 谁 何 は を が の に で と だ
    か
""".split()  # noqa: SIM905
