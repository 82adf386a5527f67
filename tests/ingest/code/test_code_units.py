"""Pieces of code in every language: names, lines, signatures, docstrings, calls and imports."""

from __future__ import annotations

import random

import pytest

from ingest.code.parse import LANGUAGES, grammar, language_of, parse
from ingest.code.units import LONGEST, Unit, decode, mask, text_units, units_of, unwanted

GO = b"""package a
import "fmt"
// Server serves.
// Always.
type Server struct { A int }
// Start starts it.
func (s *Server) Start(ctx int) error { return fmt.Errorf("x") }
func main() { foo() }
"""
RUST = b"""use std::io::Read;
/// A point.
#[derive(Debug)]
pub struct Point { x: i32 }
impl Point {
    /// Makes one.
    pub fn new(x: i32) -> Self { helper(x) }
}
mod inner { pub fn deep() {} }
trait Shape { fn area(&self) -> f64; }
"""
JAVA = b"""import java.util.List;
/** Keeps things. */
public class Keeper extends Base {
  /** Adds. */
  @Override
  public int add(int a) { return List.of(a).size(); }
  Keeper() {}
  interface Inner { void look(); }
}
"""
C = b"""#include <stdio.h>
/* Greets. */
static char *(*greet(int n))[3] { printf("x"); return 0; }
typedef struct { int a; } thing_t;
int broken( {
void after(void) { greet(1); }
"""
CPP = b"""namespace n {
template <typename T>
class Foo : public B { public: void bar(int x) { baz(x); } };
void Foo::decl() { std::sort(a); }
}
"""
JAVASCRIPT = b"""import {a, b as c} from 'x';
/** Does it. */
export function doIt(x) { return a(x) }
export const arrow = async (y) => { c.d(y) };
class K extends L { m() { return this.n() } #hidden() {} }
module.exports.foo = function (z) { require('q') }
"""
TYPESCRIPT = b"""interface Shape { area(): number }
export abstract class C<T> implements Shape { private f = (x: T) => x; area(): number { return g() } }
type U = A | B;
enum E { X }
namespace N { export function inside(): void {} }
"""
PYTHON = b'''"""Module."""
import os
from a.b import c as d
LIMITS = {"some": "constant", "another": "one", "third": 3}
# leads
@dec
def f(a, b=1):
    """Doc of f.

    More.
    """
    def inner():
        return os.path(a)
    return d(inner)
class K(B):
    "doc k"
    @overload
    def m(self, a: int) -> int: ...
    def m(self, a):
        return a
'''

NAMES = {
    "go": "struct Server, method Server.Start, function main",
    "rust": "struct Point, method Point.new, function inner.deep, trait Shape, method Shape.area",
    "java": "class Keeper, method Keeper.add, method Keeper.Keeper, interface Keeper.Inner, method Keeper.Inner.look",
    "c": "function greet, struct thing_t, function after",
    "cpp": "class n.Foo, method n.Foo.bar, method n.Foo.decl",
    "javascript": "function doIt, function arrow, class K, method K.m, method K.hidden, function foo",
    "typescript": "interface Shape, class C, method C.f, method C.area, type U, enum E, function N.inside",
    "python": "module mod, function f, function f.inner, class K, method K.m",
}
SOURCES = {
    "go": GO,
    "rust": RUST,
    "java": JAVA,
    "c": C,
    "cpp": CPP,
    "javascript": JAVASCRIPT,
    "typescript": TYPESCRIPT,
    "python": PYTHON,
}


def units(source: bytes, language: str) -> dict[str, Unit]:
    return {unit.qualified_name: unit for unit in units_of(source, parse(source, language), language, "mod")}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_grammar_takes_its_query(language: str) -> None:
    assert grammar(language)


@pytest.mark.parametrize("language", SOURCES)
def test_names_and_kinds(language: str) -> None:
    found = units(SOURCES[language], language).values()
    wanted = [unit for unit in found if unit.type != "module" or language == "python"]
    assert ", ".join(f"{unit.type} {unit.qualified_name}" for unit in wanted) == NAMES[language]


@pytest.mark.parametrize(
    ("language", "name", "signature", "docstring", "calls"),
    [
        ("go", "Server.Start", "func (s *Server) Start(ctx int) error", "Start starts it.", ("Errorf",)),
        ("go", "Server", "type Server struct { A int }", "Server serves.\nAlways.", ()),
        ("rust", "Point.new", "pub fn new(x: i32) -> Self", "Makes one.", ("helper",)),
        ("rust", "Point", "pub struct Point", "A point.", ()),
        ("java", "Keeper.add", "@Override public int add(int a)", "Adds.", ("of", "size")),
        ("c", "greet", "static char *(*greet(int n))[3]", "Greets.", ("printf",)),
        ("cpp", "n.Foo.decl", "void Foo::decl()", "", ("sort",)),
        ("javascript", "doIt", "function doIt(x)", "Does it.", ("a",)),
        ("javascript", "arrow", "const arrow = async (y)", "", ("d",)),
        ("python", "f", "def f(a, b=1):", "Doc of f.\n\nMore.", ("path", "d")),
        ("python", "K", "class K(B):", "doc k", ()),
    ],
)
def test_what_is_told_of_each(language: str, name: str, signature: str, docstring: str, calls: tuple[str, ...]) -> None:
    unit = units(SOURCES[language], language)[name]
    assert (unit.signature, unit.docstring, unit.calls) == (signature, docstring, calls)


def test_imports_are_those_it_uses() -> None:
    found = units(PYTHON, "python")
    assert found["f"].imports == ("import os", "from a.b import c as d")
    assert found["f.inner"].imports == ("import os",)
    assert found["K.m"].imports == ()


def test_lines_and_text_are_those_of_the_file() -> None:
    found = units(PYTHON, "python")
    assert (found["f"].start_line, found["f"].end_line) == (6, 14)
    assert found["f"].text.startswith('# leads\n@dec\ndef f(a, b=1):\n    """Doc')
    assert found["f.inner"].text == "def inner():\n    return os.path(a)"
    assert found["mod"].text.startswith('"""Module."""\nLIMITS')


def test_a_class_is_an_outline_of_its_methods() -> None:
    text = units(PYTHON, "python")["K"].text
    assert "def m(self, a):\n        ..." in text
    assert "return a" not in text


def test_a_signature_that_is_overloaded_is_no_piece() -> None:
    assert [unit.start_line for unit in units(PYTHON, "python").values() if unit.name == "m"] == [19]


def test_the_rest_of_a_file_with_errors_is_taken() -> None:
    parsed = parse(C, "c")
    assert parsed.has_errors
    assert "after" in {each.name for each in parsed.definitions}


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("python", "def broken(:\n  x = (\nclass After:\n    def last(self): return 1\n"),
        ("python", "def broken():\n  x = '''abc\n\nclass After:\n    def last(self): return 1\n"),
        ("go", "package a\nfunc broken() {\n if x {\n}\nfunc After() { return }\nfunc last() {}\n"),
        ("javascript", "function broken() {\n if (x) {\n}\nfunction After() { return 2 }\nfunction last() {}\n"),
        ("c", "int broken(void) {\n if (x) {\n}\nint After(void) { return 2; }\nint last(void) {}\n"),
    ],
)
def test_what_an_open_bracket_swallows_is_found_again(language: str, source: str) -> None:
    parsed = parse(source.encode(), language)
    found = {each.name: each for each in parsed.definitions}
    assert {"After", "last"} <= set(found)
    assert found["After"].qualified_name == "After"
    assert found["last"].first_row == source[: source.index("last")].count("\n")


def test_a_long_function_is_kept_by_its_beginning() -> None:
    source = b"def f():\n" + b"    x = 1\n" * 20_000
    unit = units(source, "python")["f"]
    assert len(unit.text) <= LONGEST + 5
    assert unit.text.endswith("…")
    assert unit.end_line == 20_001


def test_a_file_that_defines_too_much_is_cut() -> None:
    parsed = parse(b"def f(): 1\n" * 6_000, "python")
    assert parsed.cut
    assert len(parsed.definitions) == 5_000


def test_deep_nesting_is_no_recursion() -> None:
    source = "".join(f"{' ' * depth}def f{depth}():\n" for depth in range(1500)) + " " * 1500 + "pass\n"
    found = parse(source.encode(), "python").definitions
    assert len(found[-1].qualified_name.split(".")) <= 12


def test_other_files_are_taken_by_lines() -> None:
    lines = [f"echo {number}" for number in range(100)]
    lines[30] = ""
    found = text_units("\n".join(lines), "run.sh")
    assert [(unit.start_line, unit.end_line) for unit in found] == [(1, 31), (32, 71), (72, 100)]
    assert found[0].qualified_name == "run.sh:1-31"
    assert text_units("\n \n", "empty.sh") == []
    assert len(text_units("x" * 5000, "one.sh")) == 1


def test_languages_by_name() -> None:
    assert [language_of(name) for name in ("a.py", "A.H", "x.tsx", "Makefile", "run.sh")] == [
        "python", "cpp", "tsx", "make", "shell"]  # fmt: skip
    assert [language_of(name) for name in ("a.pdf", "README.md", ".py", "data.csv", "py")] == [""] * 5


@pytest.mark.parametrize(
    "data",
    [
        "name = 'café'".encode(),
        "name = 'café'".encode("utf-8-sig"),
        "name = 'café'".encode("utf-16"),
        "name = 'café'".encode("latin-1"),
        "# coding: latin-1\nname = 'café'".encode("latin-1"),
    ],
)
def test_encodings(data: bytes) -> None:
    assert decode(data).endswith("name = 'café'")
    assert unwanted(data, decode(data)) == ""


def test_an_encoding_that_is_none_is_no_trap() -> None:
    for cookie in (b"# coding: zip\n\xff", b"# coding: nonsense\n\xff", b"# coding: base64\n\xff"):
        assert decode(cookie).endswith("ÿ")


def test_nul_and_other_line_ends() -> None:
    assert decode(b"a\0b\r\nc\rd") == "a b\nc\nd"
    assert unwanted(b"def f():\n    return '\0'\n", "def f()") == ""


def test_binary_files() -> None:
    noise = random.Random(1).randbytes(4000)
    for data in (noise, b"\x7fELF\0\0\0\0\0\0" * 10, b"\0" * 100):
        assert unwanted(data, decode(data)) == "binary"


@pytest.mark.parametrize(
    "head",
    [
        "// Code generated by protoc-gen-go. DO NOT EDIT.",
        "# This file was automatically generated by SWIG",
        "/* @generated */",
        "# Generated by the protocol buffer compiler.  DO NOT EDIT!",
        "-- auto-generated, do not touch",
    ],
)
def test_generated_files(head: str) -> None:
    text = f"#!/bin/sh\n{head}\nx = 1\n"
    assert unwanted(text.encode(), text) == "generated"


def test_code_that_speaks_of_generating_is_not_generated() -> None:
    text = 'def write(path):\n    """Write a file that is generated."""\n    head = "// Code generated. DO NOT EDIT."\n'
    assert unwanted(text.encode(), text) == ""


def test_minified_files() -> None:
    text = "function a(){return 1};" * 500
    assert unwanted(text.encode(), text) == "minified"
    assert unwanted(text.encode(), text, has_long_lines=True) == ""


def test_secrets_are_masked_where_they_are_written_out() -> None:
    key = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    text = f'KEY = "{key}"\nconnect(password="hunter2secret")\nself.secret_password = typed_password\n'
    strings = [(text.index('"'), text.index('"\n') + 1), (text.index('"hunter'), text.index('")') + 1)]
    masked, count = mask(text, strings)
    assert count == 2
    assert key not in masked
    assert "hunter2" not in masked
    assert "typed_password" in masked, "what is code stays"
    assert mask("password: hunter2secret\n")[1] == 1, "in a file of settings anything may be one"


def test_a_masked_key_keeps_the_lines() -> None:
    block = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabcdefghijklmnop\n-----END RSA PRIVATE KEY-----"
    text = f'KEY = """{block}"""\ndef f(): pass\n'
    masked, count = mask(text, [(6, 6 + len(block))])
    assert count == 1
    assert masked.count("\n") == text.count("\n")
    assert "MIIEp" not in masked
