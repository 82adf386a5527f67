"""What the parts of a document are called, by those who ask for them and in its headings, in several languages.

All words in lower case and without accents, as `analyzer.normalize` leaves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of part. Questions may ask for it by its first headings, too."""

    headings: tuple[str, ...] = ()  # each: names separated by commas; the first ones that a document has are meant
    asked: str = ""
    last: bool = False  # of several such headings the last is meant
    begins: bool = False  # a heading may go on after the name, but not end with it: no "Job summary" sums up a document
    everyday: bool = False  # the words mean other things, too: only asked for where a document or section is spoken of
    also: str = ""  # words that go with asking for it, and name nothing


SUMMARY = (
    "executive summary, management summary, abstract, abstrakt, 摘要, 要旨, アブストラクト",
    "summary, zusammenfassung, kurzfassung, resume, resume analytique, resumen, resumen ejecutivo, riassunto, sintesi,"
    " resumo, resumo executivo, sumario executivo, samenvatting, synthese, 概要, 要約, エグゼクティブサマリー",
    "chair's statement, chairman's statement, chairman's report, chairman's review, chairman's letter, chairwoman's"
    " statement, chairperson's statement, chief executive's review, chief executive's statement, ceo's letter, ceo"
    " letter, letter from the chairman, letter from the ceo, letter to shareholders, letter to our shareholders,"
    " shareholder letter, dear shareholders, vorwort des vorstands, brief an die aktionare, lettre aux actionnaires,"
    " message du president, mot du president, carta a los accionistas, carta del presidente, mensaje del presidente",
    "key findings, highlights, key takeaways, takeaways, key points, main points, key messages, points cles,"
    " puntos clave, kernaussagen",
    "overview, at a glance, the year at a glance, in brief, in a nutshell, en bref, auf einen blick, uberblick, apercu,"
    " panorama, en un vistazo, in sintesi, in het kort, overzicht",
    "description of business, business overview, our business, about the company, about us, business, introduction,"
    " einleitung, einfuhrung, introduccion, introduzione, introducao, inleiding, 引言, 绪论, 序論,"
    " はじめに, 序章, preface, foreword, vorwort, avant propos, prologo, prefacio",
)
# Deep inside a document these open a chapter; the others do, if more words follow.
IN_FRONT = ", ".join((SUMMARY[2], *SUMMARY[4:]))

PARTS: Mapping[str, Part] = {
    "title": Part(asked="title, titel, titre, titulo, titolo, 标题, 题目, タイトル"),
    "authors": Part(
        asked="author, authors, coauthor, coauthors, authorship, who wrote, who has written, who authored, written by,"
        " who published, publisher, who made, who prepared, who created, who gave, who presented, who compiled,"
        " who edited, who produced, who issued, who is behind, editor, editors, affiliation, affiliations, affiliated,"
        " presenter, presenters, speaker, speakers, lecturer, contributors, creator, creators, referent, referentin,"
        " autor, autoren, autorin, autorinnen, verfasser, verfasserin, geschrieben, verfasst, herausgeber,"
        " auteur, auteurs, autrice, qui a ecrit, qui a redige, qui a publie, autora, autores, quien escribio,"
        " quienes escribieron, quien es el autor, autore, autori, chi ha scritto, quem escreveu, quem sao os autores,"
        " geschreven, schrijver, schrijvers, 作者, 谁写, 著者, 誰が書い",
        also="institution institutions university universities company email emails people person",
    ),
    "date": Part(
        asked="date, publication date, release date, publication year, published, released, issued, dated, filed,"
        " last updated, edition, version, which release, what release, how old is,"
        " datum, erscheinungsdatum, veroffentlicht, erschienen, ausgabe, auflage, date de publication, publie, paru,"
        " fecha, publicado, publicada, data di pubblicazione, pubblicato, data de publicacao, gepubliceerd,"
        " 日期, 发表, 出版, 发布, 日付, 発行",
        also="year month day jahr monat annee mois ano mes anno mese",
    ),
    "summary": Part(
        headings=SUMMARY,
        asked=SUMMARY[1] + ", overview, key findings, highlights, uberblick, apercu, overzicht,"
        " summarise, summarize, summarised, summarized, summarising, summarizing, sum up, exec summary, gist, tldr,"
        " tl dr, synopsis, recap, in short, in a nutshell, main idea, main ideas, main point, main points,"
        " main message,"
        " main topic, main topics, main argument, main arguments, main contribution, main contributions, main finding,"
        " main findings, main theme, key takeaway, key takeaways, takeaways, key points, key point, key idea,"
        " key ideas, key message, key messages, tell me about, zusammenfassen, worum geht es, worum geht s,"
        " worum gehts, wovon handelt, hauptaussage, hauptaussagen, kernaussage, kernaussagen, inhalt, resumer, resumez,"
        " de quoi parle, de quoi traite, de quoi s agit, idee principale, points cles, resumir, resuma, resumeme,"
        " de que trata, de que habla, de que va, idea principal, puntos clave, riassumi, riassumere, di cosa parla,"
        " di cosa tratta, di che cosa parla, di che cosa tratta, idea principale, panoramica, do que trata,"
        " do que fala, sobre o que e, ideia principal, visao geral, samenvatten, waar gaat, hoofdpunten, hoofdgedachte,"
        " 总结, 概括, 概述, 讲什么, 讲了什么, 关于什么, 主要内容, 大意, まとめて, 何について",
        begins=True,
    ),
    "abstract": Part(headings=SUMMARY, asked="abstract, abstrakt, 摘要, 要旨, アブストラクト", begins=True),
    "letter": Part(headings=(SUMMARY[2],), begins=True),
    "risks": Part(
        headings=(
            "principal risks, principal risks and uncertainties, risk factors, main risks, key risks, major risks,"
            " hauptrisiken, risikofaktoren, wesentliche risiken, principaux risques, facteurs de risque,"
            " factores de riesgo, principales riesgos, riesgos principales, fattori di rischio, principali rischi",
            "risk report, risks and uncertainties, risks and opportunities, opportunities and risks, risk management,"
            " risikobericht, chancen und risiken, gestion des risques, gestion de riesgos, gestion del riesgo, risks,"
            " risiken, risques, riesgos, rischi",
        ),
        asked="main risk, biggest risks, greatest risks, top risks, most important risks, grosste risiken,"
        " grossten risiken, wichtigste risiken, wichtigsten risiken, wesentlichen risiken, rischi principali",
    ),
    "contents": Part(
        headings=(
            "table of contents, contents, contents page, inhaltsverzeichnis, inhalt, table des matieres, sommaire,"
            " tabla de contenido, tabla de contenidos, indice, indice de contenidos, indice general, sommario, sumario,"
            " inhoudsopgave, inhoud, 目录, 目次",
        ),
        asked="toc, table of content, outline, list of chapters, which chapters, what chapters, chapters,"
        " list of sections, which sections, what sections, gliederung",
    ),
    "introduction": Part(
        (
            "introduction, einleitung, einfuhrung, introduccion, introduzione, introducao, inleiding, 引言, 绪论, 序論,"
            " はじめに, 序章",
        ),
        asked="intro",
    ),
    "conclusion": Part(
        (
            "conclusion, conclusions, concluding remarks, final remarks, fazit, schlussfolgerung, schlussfolgerungen,"
            " schlussbemerkung, schlussbemerkungen, schluss, conclusiones, conclusione, conclusioni, conclusao,"
            " conclusoes, consideracoes finais, conclusie, conclusies, 结论, 結論, まとめ, おわりに",
            "summary and conclusions, zusammenfassung und ausblick, summary and outlook, key findings, findings",
        ),
        last=True,
        also="draw draws drawn reach reached come",
    ),
    "purpose": Part(
        (
            "purpose, aim, aims, objective, objectives, goal, goals, ziel, ziele, zielsetzung, zweck, objectif,"
            " objectifs, objetivo, objetivos, finalidad, obiettivo, obiettivi, scopo, doel, doelstelling, 目的",
        ),
        everyday=True,
    ),
    "background": Part(
        (
            "related work, background, literature review, earlier work, previous work, state of the art, hintergrund,"
            " stand der technik, stand der forschung, contexte, etat de l art, antecedentes, estado del arte, contesto,"
            " stato dell arte, contexto, achtergrond, 背景, 相关工作, 相关研究, 関連研究, 先行研究",
        ),
        everyday=True,
    ),
    "methods": Part(
        (
            "methods, method, methodology, materials and methods, methodik, methoden, methode, vorgehen,"
            " material und methoden, methodes, methodologie, materiels et methodes, metodologia, metodos, metodo,"
            " materiales y metodos, metodi, materiali e metodi, methoden en technieken, 方法, 研究方法, 手法",
        ),
        everyday=True,
    ),
    "results": Part(
        (
            "results, ergebnisse, resultats, resultados, risultati, resultaten, 结果, 结果与讨论, 結果",
            "findings, befunde",
        ),
        everyday=True,
    ),
    "discussion": Part(
        ("discussion, diskussion, discusion, discussione, discussao, discussie, 讨论, 考察",), last=True, everyday=True
    ),
    "recommendations": Part(
        (
            "recommendations, recommendation, empfehlungen, handlungsempfehlungen, recommandations, recomendaciones,"
            " raccomandazioni, recomendacoes, aanbevelingen, 建议, 提言",
        ),
        last=True,
        everyday=True,
    ),
    "agenda": Part(
        ("agenda, tagesordnung, ordre du jour, orden del dia, ordine del giorno, 议程, 議題",), everyday=True
    ),
    "future work": Part(("future work, future works, outlook, ausblick, perspectives, trabajo futuro",), last=True),
    "references": Part(
        (
            "references, bibliography, works cited, literature cited, reference list, list of references, literatur,"
            " literaturverzeichnis, quellenverzeichnis, literaturangaben, bibliographie, references bibliographiques,"
            " bibliografia, referencias, referencias bibliograficas, riferimenti, riferimenti bibliografici,"
            " literatuur, literatuurlijst, bronnen, bronvermelding, referenties, 参考文献, 参考资料, 引用文献",
            "endnotes, notes, sources, further reading, quellen, notes et references, anmerkungen, fuentes, fonti",
        ),
        asked="citations, cites, cite, cited papers, papers cited, cited works, works cited, sources cited, endnotes,"
        " further reading, weiterfuhrende literatur",
        last=True,
    ),
    "appendix": Part(
        (
            "appendix, appendices, annex, annexes, anhang, anhange, anlage, anlagen, annexe, anexo, anexos, apendice,"
            " appendice, appendici, allegato, allegati, bijlage, bijlagen, attachment, attachments, addendum, addenda,"
            " 附录, 付録",
            "supplementary material, supplementary",
        ),
    ),
    "glossary": Part(
        (
            "glossary, glossar, glossaire, glosario, glossario, woordenlijst, begrippenlijst, glossary of terms,"
            " defined terms, 术语表, 用語集",
            "abbreviations, list of abbreviations, acronyms, list of acronyms, abkurzungsverzeichnis, abkurzungen,"
            " liste des abreviations, abreviations, abreviaturas, siglas, abbreviazioni, afkortingen",
        ),
        asked="abbreviations, list of abbreviations, acronyms, list of acronyms, abkurzungsverzeichnis, abkurzungen,"
        " liste des abreviations, abreviaturas",
    ),
    "list of figures": Part(
        (
            "list of figures, abbildungsverzeichnis, liste des figures, table des illustrations, lista de figuras,"
            " indice de figuras, elenco delle figure, indice delle figure, lijst van figuren, 图目录, 図目次",
        ),
    ),
    "list of tables": Part(
        (
            "list of tables, tabellenverzeichnis, liste des tableaux, lista de tablas, indice de tablas,"
            " elenco delle tabelle, indice delle tabelle, lijst van tabellen, 表目录, 表目次",
        ),
    ),
    "acknowledgements": Part(
        (
            "acknowledgements, acknowledgments, acknowledgement, acknowledgment, danksagung, danksagungen,"
            " remerciements, agradecimientos, ringraziamenti, agradecimentos, dankwoord, 致谢, 謝辞",
        ),
    ),
    "limitations": Part(
        (
            "limitations, limitation, einschrankungen, limitationen, limites, limitaciones, limitazioni, limitacoes,"
            " beperkingen, 局限性, 局限, 限界",
        ),
    ),
    "preface": Part(
        (
            "preface, foreword, prologue, vorwort, geleitwort, avant propos, prefacio, prologo, prefazione, premessa,"
            " voorwoord, 前言, 序言, まえがき",
        ),
    ),
    "index": Part(
        ("index, subject index, stichwortverzeichnis, sachregister, indice analitico, indice alfabetico, 索引",),
        last=True,
    ),
}
