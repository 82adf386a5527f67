"""Languages by the endings of files, and what a piece of code is in each: queries for tree-sitter's grammars.

A query marks definitions by what they are (@function, @class …) with their @name, or their @declarator where the name
stands deep in one; @owner is the type that a method stands outside of. @scope only gives names below it a beginning.
@call, @import, @string and @comment are what they say.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from research.errors import CtxError

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Query

EXTRA = "pip install 'ctx-research[code]'"


@dataclass(frozen=True, slots=True)
class Language:
    name: str
    module: str  # the package of its grammar
    query: str
    function: str = "language"  # of that package, which gives the grammar


_PYTHON = """
(function_definition name: (identifier) @name) @function
(class_definition name: (identifier) @name) @class
(call function: [(identifier) @call (attribute attribute: (identifier) @call)])
[(import_statement) (import_from_statement) (future_import_statement)] @import
(string) @string
(comment) @comment
"""

_JAVASCRIPT = """
[(function_declaration name: (identifier) @name) (generator_function_declaration name: (identifier) @name)] @function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)])
  @function
(assignment_expression
  left: [(identifier) @name (member_expression property: (property_identifier) @name)]
  right: [(arrow_function) (function_expression)]) @function
(pair key: [(property_identifier) (string)] @name value: [(arrow_function) (function_expression)]) @function
(method_definition name: (_) @name) @method
(call_expression function: [(identifier) @call (member_expression property: (property_identifier) @call)])
(new_expression constructor: (identifier) @call)
(import_statement) @import
[(string) (template_string)] @string
(comment) @comment
"""

_TYPESCRIPT_ONLY = """
[(class_declaration name: (_) @name) (abstract_class_declaration name: (_) @name)] @class
(public_field_definition name: (property_identifier) @name value: [(arrow_function) (function_expression)]) @method
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(type_alias_declaration name: (_) @name) @type
(abstract_method_signature name: (_) @name) @method
(internal_module name: (_) @name) @scope
"""

_GO = """
(function_declaration name: (identifier) @name) @function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @owner
    (pointer_type (type_identifier) @owner)
    (generic_type type: (type_identifier) @owner)
    (pointer_type (generic_type type: (type_identifier) @owner))]))
  name: (field_identifier) @name) @method
(type_declaration (type_spec name: (type_identifier) @name type: (struct_type))) @struct
(type_declaration (type_spec name: (type_identifier) @name type: (interface_type))) @interface
(call_expression function: [(identifier) @call (selector_expression field: (field_identifier) @call)])
(import_spec) @import
[(interpreted_string_literal) (raw_string_literal)] @string
(comment) @comment
"""

_RUST = """
(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(struct_item name: (type_identifier) @name) @struct
(union_item name: (type_identifier) @name) @struct
(enum_item name: (type_identifier) @name) @enum
(trait_item name: (type_identifier) @name) @trait
(macro_definition name: (identifier) @name) @macro
(impl_item type: [(type_identifier) @name (generic_type type: (type_identifier) @name)
  (scoped_type_identifier name: (type_identifier) @name)]) @owner_scope
(mod_item name: (identifier) @name body: (_)) @scope
(call_expression function: [
  (identifier) @call
  (field_expression field: (field_identifier) @call)
  (scoped_identifier name: (identifier) @call)])
(macro_invocation macro: (identifier) @call)
(use_declaration) @import
[(string_literal) (raw_string_literal)] @string
[(line_comment) (block_comment)] @comment
"""

_JAVA = """
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
(compact_constructor_declaration name: (identifier) @name) @method
[(class_declaration name: (identifier) @name) (record_declaration name: (identifier) @name)] @class
[(interface_declaration name: (identifier) @name) (annotation_type_declaration name: (identifier) @name)] @interface
(enum_declaration name: (identifier) @name) @enum
(method_invocation name: (identifier) @call)
(object_creation_expression type: (type_identifier) @call)
(import_declaration) @import
(string_literal) @string
[(line_comment) (block_comment)] @comment
"""

_C = """
(function_definition declarator: (_) @declarator) @function
(struct_specifier name: (type_identifier) @name body: (_)) @struct
(union_specifier name: (type_identifier) @name body: (_)) @struct
(enum_specifier name: (type_identifier) @name body: (_)) @enum
(type_definition type: [(struct_specifier !name body: (_)) (union_specifier !name body: (_))]
  declarator: (type_identifier) @name) @struct
(type_definition type: (enum_specifier !name body: (_)) declarator: (type_identifier) @name) @enum
(preproc_function_def name: (identifier) @name) @macro
(call_expression function: [(identifier) @call (field_expression field: (field_identifier) @call)])
(preproc_include) @import
[(string_literal) (char_literal)] @string
(comment) @comment
"""

_CPP_ONLY = """
(class_specifier name: (_) @name body: (_)) @class
(namespace_definition name: (_) @name) @scope
(call_expression function: (qualified_identifier name: (identifier) @call))
(raw_string_literal) @string
"""

_JAVASCRIPT_ONLY = """
(class_declaration name: (identifier) @name) @class
(field_definition property: (property_identifier) @name value: [(arrow_function) (function_expression)]) @method
"""

LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (
        Language("python", "tree_sitter_python", _PYTHON),
        Language("javascript", "tree_sitter_javascript", _JAVASCRIPT + _JAVASCRIPT_ONLY),
        Language("typescript", "tree_sitter_typescript", _JAVASCRIPT + _TYPESCRIPT_ONLY, "language_typescript"),
        Language("tsx", "tree_sitter_typescript", _JAVASCRIPT + _TYPESCRIPT_ONLY, "language_tsx"),
        Language("go", "tree_sitter_go", _GO),
        Language("rust", "tree_sitter_rust", _RUST),
        Language("java", "tree_sitter_java", _JAVA),
        Language("c", "tree_sitter_c", _C),
        Language("cpp", "tree_sitter_cpp", _C + _CPP_ONLY),
    )
}
"""Those that are taken apart; all others are text by lines."""

# A header may be C's or C++'s: the grammar of C++ reads nearly all of C.
_PARSED = {
    "python": ".py .pyi .pyw",
    "javascript": ".js .jsx .mjs .cjs",
    "typescript": ".ts .mts .cts",
    "tsx": ".tsx",
    "go": ".go",
    "rust": ".rs",
    "java": ".java",
    "c": ".c",
    "cpp": ".cc .cpp .cxx .c++ .h .hh .hpp .hxx .h++ .inl .ipp .tpp .cu .cuh",
}
_BY_LINES = {
    "shell": ".sh .bash .zsh .ksh .fish",
    "ruby": ".rb .rake .gemspec",
    "php": ".php",
    "perl": ".pl .pm",
    "lua": ".lua",
    "r": ".r",
    "julia": ".jl",
    "kotlin": ".kt .kts",
    "scala": ".scala .sc",
    "swift": ".swift",
    "csharp": ".cs",
    "fsharp": ".fs .fsx",
    "haskell": ".hs",
    "ocaml": ".ml .mli",
    "elixir": ".ex .exs",
    "erlang": ".erl .hrl",
    "clojure": ".clj .cljs .cljc .edn",
    "dart": ".dart",
    "objective-c": ".m .mm",
    "sql": ".sql",
    "css": ".css .scss .sass .less",
    "html": ".html .htm .vue .svelte .jinja .j2",
    "yaml": ".yaml .yml",
    "toml": ".toml",
    "ini": ".ini .cfg .conf .properties",
    "protobuf": ".proto",
    "graphql": ".graphql .gql",
    "terraform": ".tf .hcl",
    "cmake": ".cmake",
    "gradle": ".gradle .groovy",
    "powershell": ".ps1 .psm1",
    "batch": ".bat .cmd",
    "vim": ".vim",
    "lisp": ".el .lisp .lsp .scm .rkt",
    "zig": ".zig",
    "nim": ".nim",
    "verilog": ".v .sv .svh",
    "vhdl": ".vhd .vhdl",
    "assembly": ".s .asm",
    "fortran": ".f .f90 .f95 .f03 .for",
    "pascal": ".pas .pp",
    "cython": ".pyx .pxd",
    "tcl": ".tcl",
    "awk": ".awk",
    "nix": ".nix",
    "solidity": ".sol",
    "bazel": ".bzl",
    "starlark": ".star",
}
_NAMES = {
    "makefile": "make",
    "gnumakefile": "make",
    "dockerfile": "docker",
    "containerfile": "docker",
    "cmakelists.txt": "cmake",
    "rakefile": "ruby",
    "gemfile": "ruby",
    "vagrantfile": "ruby",
    "jenkinsfile": "gradle",
    "build": "bazel",
    "workspace": "bazel",
    "justfile": "make",
    "sconstruct": "python",
}
_ENDINGS = {
    ending: name for table in (_PARSED, _BY_LINES) for name, endings in table.items() for ending in endings.split()
}


def language_of(filename: str) -> str:
    """What a file is written in, by its name; empty if that tells of no source code."""
    lowered = filename.lower()
    if lowered in _NAMES:
        return _NAMES[lowered]
    stem, dot, ending = lowered.rpartition(".")
    return _ENDINGS.get(f".{ending}", "") if dot and stem else ""


def check_installed() -> None:
    """Raise if the grammars are not there, before anything is read."""
    for module in ("tree_sitter", "pathspec", *{language.module for language in LANGUAGES.values()}):
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise CtxError(
                f"reading code needs a package that is not installed ({module.replace('_', '-')})",
                hint=f"install it with: {EXTRA}",
            ) from error


@cache
def grammar(name: str) -> tuple[Grammar, Query]:
    """A language's grammar and query."""
    from tree_sitter import Language as Loaded
    from tree_sitter import Query

    known = LANGUAGES[name]
    loaded = Loaded(getattr(importlib.import_module(known.module), known.function)())
    return loaded, Query(loaded, known.query)
