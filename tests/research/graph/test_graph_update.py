"""The graph follows the index: what comes, what mentions what came later, what changes, what goes."""

from __future__ import annotations

from graph_making import Graph

from research.graph import update
from research.graph.extraction import Titles
from research.records import Page
from research.store import FileStamp, NewItem

LONG = "Night flushing of school libraries"


def test_a_document_has_sections_and_pages(graph: Graph) -> None:
    doc = graph.add("a.pdf", ["a cover", "# 1 Start\n\nsee Section 2.1", "## 1.1 More\n\n# 2 End", "## 2.1 Last", "so"])
    named = dict(_sections(graph))
    assert list(named.values()) == ["1 Start", "1.1 More", "2 End", "2.1 Last"]
    start, more, end, last = named
    page = [f"page:{doc}#{number}" for number in range(6)]
    assert graph.edges("contains") == {
        (f"document:{doc}", page[1]),
        (f"document:{doc}", start),
        (f"document:{doc}", end),
        (start, more),
        (end, last),
        (start, page[2]),
        (start, page[3]),
        (more, page[3]),
        (end, page[3]),
        (end, page[4]),
        (last, page[4]),
        (last, page[5]),
    }
    assert graph.edges("refers") == {(page[2], page[4])}


def _sections(graph: Graph) -> list[tuple[str, str]]:
    graph.update()
    rows = graph.catalog.execute("SELECT ref, name FROM nodes WHERE name <> '' ORDER BY node_no")
    return [(str(row[0]), str(row[1])) for row in rows]


def test_documents_mention_each_other_whoever_comes_first(graph: Graph) -> None:
    early = graph.add("early.pdf", ["as said in late report.pdf", f"and in “{LONG}”", "doi:10.1234/ABC.5)."])
    assert graph.edges("cites") == set()
    late = graph.add("late report.pdf", ["we follow early.pdf"])
    titled = graph.add("c.pdf", ["something else"], title=LONG)
    with_doi = graph.add("d.pdf", ["https://doi.org/10.1234/abc.5"])
    assert graph.edges("cites") == {
        *((f"document:{early}", f"document:{other}") for other in (late, titled, with_doi)),
        (f"page:{early}#1", f"document:{late}"),
        (f"page:{early}#2", f"document:{titled}"),
        (f"page:{early}#3", f"document:{with_doi}"),
        (f"document:{late}", f"document:{early}"),
        (f"page:{late}#1", f"document:{early}"),
    }


def test_a_name_that_two_have_means_none(graph: Graph) -> None:
    first = graph.add("a.pdf", ["one"], title=LONG)
    graph.add("b.pdf", [LONG])
    assert len(graph.edges("cites")) == 2
    second = graph.add("c.pdf", ["two"], title=LONG)
    assert graph.edges("cites") == set()
    graph.catalog.documents.remove(second)
    assert {target for _, target in graph.edges("cites")} == {f"document:{first}"}


def test_short_titles_and_plain_words_cite_nothing(graph: Graph) -> None:
    graph.add("a.pdf", ["one"], title="Annual report")
    graph.add("b.pdf", ["the annual report of the year; a.pdfx; xa.pdf; v1.0"])
    assert graph.edges("cites") == set()


def test_newer_versions(graph: Graph) -> None:
    old = graph.add("handbook-2023.pdf", ["a"])
    new = graph.add("handbook-2025.pdf", ["b"])
    assert graph.edges("newer") == {(f"document:{new}", f"document:{old}")}
    between = graph.add("Handbook 2024.pdf", ["c"])
    assert graph.edges("newer") == {
        (f"document:{new}", f"document:{between}"),
        (f"document:{between}", f"document:{old}"),
    }
    graph.catalog.documents.remove(between)
    assert graph.edges("newer") == {(f"document:{new}", f"document:{old}")}
    graph.add("chapter-1.pdf", ["d"])
    graph.add("chapter-2.pdf", ["e"])
    graph.add("2023.pdf", ["f"])
    graph.add("2024.pdf", ["g"])
    assert len(graph.edges("newer")) == 1


def test_a_removed_document_takes_its_edges_along(graph: Graph) -> None:
    early, late = graph.add("early.pdf", ["see late.pdf", "on page 1"]), graph.add("late.pdf", ["see early.pdf"])
    graph.update()
    graph.catalog.documents.remove(late)
    assert {ref for edge in graph.edges() for ref in edge if late in ref} == set()
    assert graph.near(f"document:{late}").unknown == [f"document:{late}"]
    again = graph.add("late.pdf", ["see early.pdf"])
    assert (f"document:{early}", f"document:{again}") in graph.edges("cites")
    for doc in (early, again):
        graph.catalog.documents.remove(doc)
    assert graph.catalog.graph.count() == (0, 0)


def test_a_replaced_document_is_followed_under_its_former_id(graph: Graph) -> None:
    citing = graph.add("citing.pdf", ["see plan.pdf"])
    before = graph.add("plan.pdf", ["draft"])
    graph.update()
    after = graph.add("plan.pdf", ["the plan", "see page 1"])
    sources = (f"document:{citing}", f"page:{citing}#1")
    assert graph.edges("cites") == {(source, f"document:{after}") for source in sources}
    found = graph.near(f"document:{before}")
    assert (found.unknown, found.nodes[0].ref) == ([], f"document:{after}")
    assert graph.near(f"page:{before}#2").nodes[0].ref == f"page:{after}#2"


def test_a_new_name_and_new_text_are_read_again(graph: Graph) -> None:
    doc = graph.add("a.pdf", ["", "Table 5: Rents"])
    graph.add("b.pdf", ["see plan.pdf"])
    graph.update()
    graph.catalog.documents.write_ocr(doc, Page(1, "as Table 5 shows", ocr_engine="tesseract"), [], [])
    assert graph.edges("refers") == {(f"page:{doc}#1", f"page:{doc}#2")}
    graph.catalog.documents.rename(doc, "/docs/a.pdf", FileStamp("/docs/plan.pdf", 1, 1, 1, 1), "plan.pdf")
    assert f"document:{doc}" in {target for _, target in graph.edges("cites")}


def test_code_calls_and_imports(graph: Graph) -> None:
    imports = ["from pkg.b import dive", "from .c import x"]
    graph.code("pkg/a.py", ("swim", ["dive", "get", "twice"], imports), ("twice", [], []))
    assert graph.edges("calls") == {("code:/tree/pkg/a.py#swim", "code:/tree/pkg/a.py#twice")}
    graph.code("pkg/b.py", ("dive", ["swim"], []), ("get", [], []), ("twice", [], []))
    graph.code("pkg/c.py", ("x", [], []))
    graph.code("pkg/b.py", ("dive", [], []), root="/other")
    assert graph.edges("calls") == {
        ("code:/tree/pkg/a.py#swim", "code:/tree/pkg/a.py#twice"),  # its own file's, not another's
        ("code:/tree/pkg/a.py#swim", "code:/tree/pkg/b.py#dive"),
        ("code:/tree/pkg/b.py#dive", "code:/tree/pkg/a.py#swim"),
    }
    assert graph.edges("imports") == {
        ("code:/tree/pkg/a.py#swim", "file:/tree/pkg/b.py"),
        ("code:/tree/pkg/a.py#swim", "file:/tree/pkg/c.py"),
    }
    graph.code("pkg/b.py", ("dive", [], []))
    assert ("code:/tree/pkg/b.py#dive", "code:/tree/pkg/a.py#swim") not in graph.edges("calls")
    graph.catalog.items.remove_parents("code", ["/tree/pkg/b.py"])
    assert {ref for edge in graph.edges() for ref in edge if "/tree/pkg/b.py#" in ref} == set()


def test_a_name_that_many_have_is_not_called(graph: Graph) -> None:
    for number in range(5):
        graph.code(f"m{number}.py", ("render", [], []))
    graph.code("caller.py", ("page", ["render"], []))
    assert graph.edges("calls") == set()


def test_commits_change_files(graph: Graph) -> None:
    graph.code("a.py", ("swim", [], []))
    graph.commit("c1", "a.py", "gone.py")
    found = graph.near("commit:c1", hops=2)
    assert {node.ref: node.hop for node in found.nodes} == {
        "commit:c1": 0,
        "file:/tree/a.py": 1,
        "file:/tree/gone.py": 1,
        "code:/tree/a.py#swim": 2,
    }
    graph.catalog.items.remove_parents("commit", ["/tree/.git"])
    assert graph.near("file:/tree/gone.py").unknown == ["file:/tree/gone.py"], "nothing leads there any more"
    assert graph.near("file:/tree/a.py").unknown == []


def test_experiences_support_values(graph: Graph) -> None:
    for name in ("one", "two"):
        items = [NewItem(f"{name}/{axis}", name, name, metadata={}) for axis in ("full", "surprise")]
        graph.catalog.items.put("experience", name, "1", items)
    graph.update()
    value = NewItem("v1", "test first", "test first", metadata={"members": ["one", "two", "nobody"]})
    graph.catalog.items.put("value", "values", "1", [value])
    assert graph.edges("supports") == {("experience:one", "value:v1"), ("experience:two", "value:v1")}
    graph.catalog.items.put("value", "values", "2", [NewItem("v1", "t", "t", metadata={"members": ["one"]})])
    assert graph.edges("supports") == {("experience:one", "value:v1")}
    graph.catalog.items.remove_parents("experience", ["one"])
    assert graph.edges("supports") == set()


def test_forgotten_memories_take_their_session_along(graph: Graph) -> None:
    graph.tell("anna", "first", session="secret plans")
    graph.tell("anna", "second", session="secret plans")
    graph.tell("anna", "third")
    graph.update()
    with graph.catalog.transaction() as connection:
        connection.memories.forget("anna", [1, 2])
    left = [str(row[0]) for row in graph.catalog.execute("SELECT ref FROM nodes")]
    assert left == ["memory:third"]


def test_an_update_ends_in_time_and_goes_on(graph: Graph) -> None:
    graph.add("a.pdf", ["one"])
    assert update.update_graph(graph.catalog, seconds=0).complete is False
    assert graph.catalog.graph.count() == (0, 0)
    assert update.update_graph(graph.catalog).documents == 1
    assert update.update_graph(graph.catalog) == update.GraphUpdate()
    assert not update.is_behind(graph.catalog)


def test_other_rules_read_everything_again(graph: Graph, monkeypatch) -> None:
    graph.add("a.pdf", ["see page 2", "here"])
    graph.code("a.py", ("swim", ["dive"], []), ("dive", [], []))
    before = graph.edges()
    monkeypatch.setattr(update, "RULES", update.RULES + 1)
    assert update.is_behind(graph.catalog)
    done = update.update_graph(graph.catalog)
    assert (done.documents, done.items) == (1, 2)
    assert graph.edges() == before


def test_titles_are_found_as_whole_words() -> None:
    titles = Titles([("a", LONG), ("b", "Night flushing of school libraries in Kiel"), ("c", "Too short")])
    assert len(list(titles.found_in(f"… {LONG.upper()}, in Kiel"))) == 2
    assert list(titles.found_in("Night flushing of school librarieses")) == []
