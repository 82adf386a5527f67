"""PDFs that ask for more than anybody should give, written byte by byte: no library would make them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

MEGABYTE = 1 << 20


def pdf(objects: Iterable[bytes], *, trailer: bytes = b"", root: int = 1) -> bytes:
    """A file of these objects, numbered from 1, with a sound cross-reference table."""
    out = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root %d 0 R %s >>\n" % (len(offsets) + 1, root, trailer)
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % table)


def stream(data: bytes, extra: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n" % (len(data), extra) + data + b"\nendstream"


def text(words: str, size: int = 12) -> bytes:
    """Operators that write a line on a page."""
    return b"BT /F1 %d Tf 72 700 Td (%s) Tj ET\n" % (size, words.encode("latin-1"))


FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def leaf(
    content: int,
    *,
    parent: int = 2,
    font: bytes = b"/F1 5 0 R",
    resources: bytes = b"",
    extra: bytes = b"",
    side: int = 800,
) -> bytes:
    """A page whose content and font are these objects."""
    return (
        b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 %d %d] /Contents %d 0 R"
        b" /Resources << /Font << %s >> %s >> %s >>" % (parent, side, side, content, font, resources, extra)
    )


def one_page(content: bytes, *, more: Iterable[bytes] = (), outlines: bytes = b"", **page: Any) -> bytes:
    """Catalog 1, pages 2, page 3, content 4 (a whole stream), font 5; `more` are the objects from 6 on."""
    catalog = b"<< /Type /Catalog /Pages 2 0 R %s >>" % outlines
    return pdf([catalog, b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", leaf(4, **page), content, FONT, *more])


def squeezed(part: bytes, times: int, *, before: bytes = b"", rounds: int = 1) -> bytes:
    """`part` about so many times over, deflated; squeezed again `rounds - 1` times.

    One block is deflated so that it stands alone, and then only repeated: gigabytes are made in no time.
    """
    packer = zlib.compressobj(9)
    head = packer.compress(before) + packer.flush(zlib.Z_FULL_FLUSH)
    block = part * max(1, min(times, MEGABYTE // len(part)))
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    # The sum at the end would need the gigabytes; readers of PDFs do not look at it.
    data = head + packed * max(1, times * len(part) // len(block)) + packer.flush()
    for _ in range(rounds - 1):
        data = zlib.compress(data, 9)
    return data


def _filters(rounds: int) -> bytes:
    return b"/Filter [" + b"/FlateDecode " * rounds + b"]"


def deflated_content(gigabytes: float = 2.0) -> bytes:
    """Kilobytes that unfold to gigabytes of blanks in a page's content."""
    data = squeezed(b" ", int(gigabytes * 1024 * MEGABYTE), before=text("behind the blanks"), rounds=2)
    return one_page(stream(data, _filters(2)))


def _image(data: bytes, side: int, extra: bytes) -> bytes:
    kind = b"/Type /XObject /Subtype /Image /Width %d /Height %d /BitsPerComponent 8 " % (side, side)
    content = stream(text("beside the image") + b"q 500 0 0 500 50 50 cm /I Do Q")
    return one_page(content, resources=b"/XObject << /I 6 0 R >>", more=[stream(data, kind + extra)])


def deflated_image(side: int = 40_000) -> bytes:
    """An image of gigabytes that are all there, in kilobytes of file."""
    return _image(squeezed(b"\x00", side * side, rounds=2), side, b"/ColorSpace /DeviceGray " + _filters(2))


def declared_image(side: int = 100_000) -> bytes:
    """An image that claims ten billion pixels and holds none of them."""
    return _image(b"\x00" * 64, side, b"/ColorSpace /DeviceRGB")


def operators(count: int = 6_000_000) -> bytes:
    """Strokes without end on one page."""
    return one_page(stream(squeezed(b"0 0 m 300 400 l S\n", count, before=text("under the strokes")), _filters(1)))


def _form(content: bytes, other: int = 0) -> bytes:
    """A form that may draw another by the name of X."""
    resources = b"/Resources << /XObject << /X %d 0 R >> >>" % other if other else b""
    return stream(content, b"/Type /XObject /Subtype /Form /BBox [0 0 600 700] " + resources)


def _with_form(words: str, forms: list[bytes]) -> bytes:
    return one_page(stream(text(words) + b"/X Do"), resources=b"/XObject << /X 6 0 R >>", more=forms)


def nested_forms(depth: int = 40) -> bytes:
    """Each form draws the next one twice: two to the power of `depth`."""
    forms = [_form(b"/X Do /X Do", 7 + n) for n in range(depth)]
    return _with_form("above the forms", [*forms, _form(b"0 0 5 5 re f")])


def deep_forms(depth: int = 20_000) -> bytes:
    """Each form draws the next one once, deeper than any stack."""
    forms = [_form(b"/X Do", 7 + n) for n in range(depth)]
    return _with_form("above the depth", [*forms, _form(b"0 0 5 5 re f")])


def own_form() -> bytes:
    """A form that draws itself."""
    return _with_form("beside the snake", [_form(b"/X Do /X Do", 6)])


def patterns(depth: int = 12) -> bytes:
    """Tilings of tilings: each fills its tile with the next."""
    tile = (
        b"/Type /Pattern /PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 100 100] /XStep 1 /YStep 1"
        b" /Resources << %s >>"
    )
    fill = b"/Pattern cs /P scn 0 0 600 700 re f"
    tiles = [stream(fill, tile % (b"/Pattern << /P %d 0 R >>" % (7 + n))) for n in range(depth)]
    last = stream(b"0 0 5 5 re f", tile % b"")
    return one_page(stream(text("over the tiles") + fill), resources=b"/Pattern << /P 6 0 R >>", more=[*tiles, last])


def vast_page() -> bytes:
    """A page of a billion points."""
    return one_page(stream(text("lost on a vast page") + b"0 0 999999999 999999999 re S"), side=1_000_000_000)


def claimed_count() -> bytes:
    return one_page(stream(text("one of two billion"))).replace(b"/Count 1 ", b"/Count 2000000000 ")


def cyclic_pages() -> bytes:
    """A page tree whose branch holds its own root."""
    return pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R 6 0 R] /Count 4 >>",
            leaf(4),
            stream(text("before the cycle")),
            FONT,
            b"<< /Type /Pages /Parent 2 0 R /Kids [2 0 R 6 0 R] /Count 3 >>",
        ]
    )


def deep_pages(depth: int = 50_000) -> bytes:
    """A page tree with one branch a level."""
    branch = b"<< /Type /Pages /Parent %d 0 R /Kids [%d 0 R] /Count 1 >>"
    return pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [6 0 R] /Count 1 >>",
            b"null",
            stream(text("at the bottom")),
            FONT,
            *[branch % (5 + n if n else 2, 7 + n) for n in range(depth)],
            leaf(4, parent=5 + depth),
        ]
    )


def many_pages(count: int = 3_000) -> bytes:
    kids = b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(count))
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count), FONT]
    for number in range(1, count + 1):
        objects += [leaf(3 + 2 * number, font=b"/F1 3 0 R"), stream(text(f"sheet number {number}"))]
    return pdf(objects)


def annotations(count: int = 20_000) -> bytes:
    note = b"<< /Type /Annot /Subtype /FreeText /Rect [%d %d %d %d] /Contents (note %d) /DA (/Helv 9 Tf 0 g) >>"
    notes = [note % (n % 500, n % 700, n % 500 + 50, n % 700 + 20, n) for n in range(count)]
    listed = b" ".join(b"%d 0 R" % (6 + n) for n in range(count))
    return one_page(stream(text("under the notes")), extra=b"/Annots [%s]" % listed, more=notes)


def fonts(count: int = 20_000) -> bytes:
    named = b"/F1 5 0 R " + b" ".join(b"/G%d %d 0 R" % (n, 6 + n) for n in range(count))
    used = b"BT 72 500 Td " + b" ".join(b"/G%d 9 Tf (a) Tj" % n for n in range(count)) + b" ET"
    return one_page(stream(text("in many fonts") + used), font=named, more=[FONT] * count)


def outline(depth: int = 30_000, *, cyclic: bool = False) -> bytes:
    """Contents as deep as they are long; or an entry that is its own child and its own neighbour."""
    entry = b"<< /Title (level %d) /Parent %d 0 R /Dest [3 0 R /Fit] %s >>"
    inner = b"/First %d 0 R /Last %d 0 R /Count 1"
    entries = [entry % (n, 6 + n, inner % (8 + n, 8 + n) if n < depth - 1 else b"") for n in range(depth)]
    if cyclic:
        entries = [entry % (0, 6, inner % (7, 7) + b" /Next 7 0 R")]
    top = b"<< /Type /Outlines /First 7 0 R /Last 7 0 R /Count 1 >>"
    return one_page(stream(text("below the outline")), outlines=b"/Outlines 6 0 R", more=[top, *entries])


def huge_xref() -> bytes:
    """A cross-reference stream that claims two billion objects, and a trailer that agrees."""
    whole = one_page(stream(text("behind the table")))
    return whole.replace(b"/Size 6", b"/Size 2147483647").replace(b"xref\n0 6", b"xref\n0 2147483647")


def xref_stream(entries: int = 400 * MEGABYTE) -> bytes:
    """A cross-reference stream of gigabytes of zeros."""
    data = squeezed(b"\x00", entries * 7, rounds=2)
    body = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
    at = len(body)
    table = stream(data, b"/Type /XRef /Size %d /W [1 4 2] /Root 1 0 R " % entries + _filters(2))
    return body + b"3 0 obj\n" + table + b"\nendobj\nstartxref\n%d\n%%%%EOF\n" % at


def object_stream(megabytes: int = 2048) -> bytes:
    """A compressed object stream of gigabytes that the page's font has to be looked up in."""
    data = squeezed(b" ", megabytes * MEGABYTE, before=b"9 0 << /Type /Font >>", rounds=2)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        leaf(4, font=b"/F1 9 0 R"),
        stream(text("its font is far away")),
        stream(data, b"/Type /ObjStm /N 1 /First 4 " + _filters(2)),
    ]
    whole = bytearray(b"%PDF-1.7\n")
    row = b"\x01%s\x00\x00"
    rows = b"\x00\x00\x00\x00\x00\xff\xff"
    for number, body in enumerate(objects, start=1):
        rows += row % len(whole).to_bytes(4, "big")
        whole += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    at = len(whole)
    rows += row % at.to_bytes(4, "big") + bytes(14) + b"\x02" + (5).to_bytes(4, "big") + b"\x00\x00"
    whole += b"6 0 obj\n" + stream(rows, b"/Type /XRef /Size 10 /W [1 4 2] /Root 1 0 R") + b"\nendobj\n"
    return bytes(whole + b"startxref\n%d\n%%%%EOF\n" % at)


def much_text(megabytes: float = 10.0) -> bytes:
    """A page with far more words than a page holds, no two lines alike."""
    lines = (
        b"(alpha beta gamma delta epsilon zeta eta no %d) Tj 0 -0.01 Td\n" % n for n in range(int(megabytes * 20_000))
    )
    content = text("the first of them") + b"BT /F1 12 Tf 72 650 Td " + b"".join(lines) + b"ET"
    return one_page(stream(zlib.compress(content), _filters(1)))


def one_line_of(part: str, megabytes: float = 2.0) -> bytes:
    """One string without end: blanks, dots, digits, whatever a pattern may stumble over."""
    run = part.encode("latin-1") * int(megabytes * MEGABYTE / len(part))
    content = text("ahead of the run") + b"BT /F1 0.001 Tf 72 600 Td (" + run + b") Tj ET"
    return one_page(stream(zlib.compress(content), _filters(1)))
