"""What `ctx ask` shows on a terminal of 80 columns, as the picture that README has of it.

python -m tests.bench.picture [OUT.svg]

It is drawn by the same code that draws the terminal, from a question on data/samples.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from cli.answer import Screen, answer_lines, screen_view
from cli.layout import plain
from ingest import Observer, ingest
from research.index import Index
from research.lazy import switch_off
from research.settings import Settings
from research.store import IndexPaths

SAMPLES = Path(__file__).parents[2] / "data" / "samples"
OUT = Path(__file__).parents[2] / "data" / "answer.svg"
QUESTION = "How long is sick pay paid in full under the 2025 handbook?"
SCREEN = Screen(80, 40)

_THEME = TerminalTheme(
    (30, 32, 37),
    (222, 222, 218),
    [
        *((40, 42, 48), (230, 110, 110), (120, 200, 140), (229, 185, 78)),
        *((120, 160, 240), (190, 140, 230), (110, 200, 210), (222, 222, 218)),
    ],
)
# Rich's own frame loads a font from the net.
_FONT_FACE = re.compile(r"@font-face\s*\{.*?\}\s*", re.DOTALL)


def main() -> int:
    switch_off()
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    with tempfile.TemporaryDirectory() as folder:
        ingest(IndexPaths(Path(folder)), [SAMPLES], settings=Settings(images=False), observer=Observer())
        with Index.open(folder) as index:
            context = index.ask(QUESTION)
            lines = answer_lines(screen_view(context), SCREEN, partial(index.documents.matches, question=QUESTION))
    screen = Console(width=SCREEN.width, record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in (plain(f'$ ctx ask "{QUESTION}"'), *lines):
        screen.print(line, markup=False, highlight=False, emoji=False)
    drawn = _FONT_FACE.sub("", screen.export_svg(title="ctx", theme=_THEME, unique_id="ctx"))
    out.write_text(drawn.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace"), encoding="utf-8")
    print(f"{out}: {out.stat().st_size / 1000:.0f} kB, {len(lines)} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
