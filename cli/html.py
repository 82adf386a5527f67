"""`ctx ask --html`: an answer as one file that stands alone.

It has no scripts, and a policy by which a browser loads nothing, from anywhere. Pictures are carried inside, small
enough to be mailed; it looks as the page of `ctx serve` does.
"""

from __future__ import annotations

import base64
import io
import os
import secrets
import shlex
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from cli.output import write
from research.context import Shown, answer_html, answer_view
from research.errors import CtxError, UsageError, is_full
from research.text import one_line

if TYPE_CHECKING:
    from research.context import SourceView
    from research.markdown import Marker
    from research.models import ResearchContext

_WIDTH, _HEIGHT, _QUALITY = 820, 1160, 55  # of a picture: its text can be read, and ten of them stay below 2 MB


def check_place(target: str) -> None:
    """Raise unless the page may be written there."""
    if target == "-":
        return
    if not target.strip():
        raise UsageError("--html needs a file", hint="name one, or - for stdout")
    file = Path(target).expanduser()
    try:
        is_folder, has_folder, is_there = file.is_dir(), file.parent.is_dir(), file.is_file()
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise _unwritable(file, error) from error
    if is_folder or not has_folder:
        what = f"{file} is a folder" if is_folder else f"there is no folder {file.parent}"
        raise UsageError(what, hint="name a file for --html, or - for stdout")
    if is_there:
        raise UsageError(f"{file} exists", hint=f"name another file, or replace it: --html - > {shlex.quote(target)}")


def _unwritable(file: Path, error: OSError) -> CtxError:
    hint = f"{'free some space, or ' if is_full(error) else ''}name another file, or - for stdout"
    return CtxError(f"{file} cannot be written: {error.strerror or error}", hint=hint)


def write_page(target: str, context: ResearchContext, mark: Marker) -> None:
    """The page into a file, whole or not at all, or to stdout for `-`. A pipe or a device is written to as it is."""
    made = answer_page(context, mark)
    if target == "-":
        write(made)
        return
    file = Path(target).expanduser().absolute()
    try:
        if file.exists() and not file.is_file():
            file.write_bytes(made.encode())
        else:
            _replace(Path(os.path.realpath(file)), made.encode())
    except BrokenPipeError:  # its reader has seen enough
        pass
    except OSError as error:
        raise _unwritable(file, error) from error
    write(f"{one_line(str(file))}\n")


def _replace(file: Path, content: bytes) -> None:
    new = file.with_name(f".ctx-{secrets.token_hex(8)}.html")
    try:
        with new.open("xb") as out:  # never through a link that somebody else has put there
            out.write(content)
        new.replace(file)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def answer_page(context: ResearchContext, mark: Marker) -> str:
    web = files("research.service") / "web"
    style = "".join((web / f"{name}.css").read_text("utf-8") for name in ("base", "answer", "plain", "file"))
    style += f"@media print{{{(web / 'print.css').read_text('utf-8')}}}"
    return answer_html(answer_view(context), mark, _shown, style=style)


def _shown(each: SourceView) -> Shown:
    """Nothing but files is ever linked: no script, no address on the net."""
    link = each.source.link if each.source.link.startswith("file:///") else ""
    return Shown(_picture(each.source.image_path or each.source.thumbnail_path or ""), link, link)


def _picture(path: str) -> str:
    """A page's picture as an address that holds it; empty where there is none."""
    if not path:
        return ""
    from PIL import Image

    try:
        with Image.open(path) as stored:
            page = stored.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):  # gone or broken: the text stands alone
        return ""
    page.thumbnail((_WIDTH, _HEIGHT))
    small = io.BytesIO()
    page.save(small, "WEBP", quality=_QUALITY)
    return f"data:image/webp;base64,{base64.b64encode(small.getvalue()).decode()}"
