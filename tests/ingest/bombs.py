"""PDFs that ask for more than anybody should give, written byte by byte: no library would make them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

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


def one_page(content: bytes, *, resources: bytes = b"", more: Iterable[bytes] = (), page: bytes = b"", box: str = "0 0 612 792") -> bytes:
    """Catalog 1, pages 2, page 3, content 4, font 5; `more` are the objects from 6 on. `content` is a whole stream."""
    leaf = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [%s] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> %s >> %s >>" % (box.encode(), resources, page)
    )
    return pdf(
        [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", leaf, content, FONT, *more]
    )


def squeezed(part: bytes, times: int, *, before: bytes = b"", rounds: int = 1) -> bytes:
    """`part` many times over, deflated without ever standing in memory; squeezed again `rounds - 1` times."""
    packer = zlib.compressobj(9)
    pieces = [packer.compress(before)]
    block = part * max(1, MEGABYTE // len(part))
    whole, rest = divmod(times * len(part), len(block))
    pieces += [packer.compress(block) for _ in range(whole)]
    data = b"".join([*pieces, packer.compress(block[:rest]), packer.flush()])
    for _ in range(rounds - 1):
        data = zlib.compress(data, 9)
    return data


def _filters(rounds: int) -> bytes:
    return b"/Filter [" + b"/FlateDecode " * rounds + b"]"


def deflated_content(gigabytes: float = 2.0) -> bytes:
    """Kilobytes that unfold to gigabytes of blanks in a page's content."""
    data = squeezed(b" ", int(gigabytes * 1024 * MEGABYTE), before=text("behind the blanks"), rounds=2)
    return one_page(stream(data, _filters(2)))


def deflated_image(side: int = 40_000) -> bytes:
    """An image of gigabytes that are all there, in kilobytes of file."""
    data = squeezed(b"\x00", side * side, rounds=2)
    image = stream(data, b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8 " % (side, side) + _filters(2))
    content = stream(text("beside the image") + b"q 500 0 0 500 50 50 cm /I Do Q")
    return one_page(content, resources=b"/XObject << /I 6 0 R >>", more=[image])


def declared_image(side: int = 100_000) -> bytes:
    """An image that claims ten billion pixels and holds none of them."""
    image = stream(b"\x00" * 64, b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceRGB /BitsPerComponent 8" % (side, side))
    content = stream(text("beside the claim") + b"q 500 0 0 500 50 50 cm /I Do Q")
    return one_page(content, resources=b"/XObject << /I 6 0 R >>", more=[image])


def operators(count: int = 6_000_000) -> bytes:
    """Strokes without end on one page."""
    return one_page(stream(squeezed(b"0 0 m 300 400 l S\n", count, before=text("under the strokes")), _filters(1)))


def nested_forms(depth: int = 40) -> bytes:
    """Each form draws the next one twice: two to the power of `depth`."""
    forms = [
        stream(b"/X Do /X Do", b"/Type /XObject /Subtype /Form /BBox [0 0 600 700] /Resources << /XObject << /X %d 0 R >> >>" % (7 + n))
        for n in range(depth)
    ]
    last = stream(b"0 0 5 5 re f", b"/Type /XObject /Subtype /Form /BBox [0 0 600 700]")
    return one_page(stream(text("above the forms") + b"/X Do"), resources=b"/XObject << /X 6 0 R >>", more=[*forms, last])


def deep_forms(depth: int = 20_000) -> bytes:
    """Each form draws the next one once, deeper than any stack."""
    forms = [
        stream(b"/X Do", b"/Type /XObject /Subtype /Form /BBox [0 0 600 700] /Resources << /XObject << /X %d 0 R >> >>" % (7 + n))
        for n in range(depth)
    ]
    last = stream(b"0 0 5 5 re f", b"/Type /XObject /Subtype /Form /BBox [0 0 600 700]")
    return one_page(stream(text("above the depth") + b"/X Do"), resources=b"/XObject << /X 6 0 R >>", more=[*forms, last])


def own_form() -> bytes:
    """A form that draws itself."""
    form = stream(b"/X Do /X Do", b"/Type /XObject /Subtype /Form /BBox [0 0 600 700] /Resources << /XObject << /X 6 0 R >> >>")
    return one_page(stream(text("beside the snake") + b"/X Do"), resources=b"/XObject << /X 6 0 R >>", more=[form])


def patterns(depth: int = 12) -> bytes:
    """Tilings of tilings: each fills its tile with the next."""
    tiles = [
        stream(
            b"/Pattern cs /P scn 0 0 100 100 re f",
            b"/Type /Pattern /PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 100 100] /XStep 1 /YStep 1"
            b" /Resources << /Pattern << /P %d 0 R >> >>" % (7 + n),
        )
        for n in range(depth)
    ]
    last = stream(b"0 0 5 5 re f", b"/Type /Pattern /PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 10 10] /XStep 1 /YStep 1 /Resources << >>")
    content = stream(text("over the tiles") + b"/Pattern cs /P scn 0 0 600 700 re f")
    return one_page(content, resources=b"/Pattern << /P 6 0 R >>", more=[*tiles, last])


def vast_page() -> bytes:
    """A page of a billion points."""
    return one_page(stream(text("lost on a vast page") + b"0 0 999999999 999999999 re S"), box="0 0 1000000000 1000000000")


def claimed_count() -> bytes:
    return one_page(stream(text("one of two billion"))).replace(b"/Count 1 ", b"/Count 2000000000 ")


def cyclic_pages() -> bytes:
    """A page tree whose branch holds its own root."""
    return pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R 6 0 R] /Count 4 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
            stream(text("before the cycle")),
            FONT,
            b"<< /Type /Pages /Parent 2 0 R /Kids [2 0 R 6 0 R] /Count 3 >>",
        ]
    )


def deep_pages(depth: int = 50_000) -> bytes:
    """A page tree with one branch a level."""
    branches = [b"<< /Type /Pages /Parent %d 0 R /Kids [%d 0 R] /Count 1 >>" % (max(2, 4 + n), 6 + n) for n in range(depth)]
    leaf = b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 612 792] /Contents 3 0 R /Resources << /Font << /F1 4 0 R >> >> >>" % (4 + depth)
    return pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>",
            stream(text("at the bottom")),
            FONT,
            *branches,
            leaf,
        ]
    )


def many_pages(count: int = 3_000) -> bytes:
    kids = b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(count))
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count), FONT]
    for number in range(1, count + 1):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
            % (3 + 2 * number)
        )
        objects.append(stream(text(f"sheet number {number}")))
    return pdf(objects)


def annotations(count: int = 20_000) -> bytes:
    notes = [
        b"<< /Type /Annot /Subtype /FreeText /Rect [%d %d %d %d] /Contents (note %d) /DA (/Helv 9 Tf 0 g) >>"
        % (n % 500, n % 700, n % 500 + 50, n % 700 + 20, n)
        for n in range(count)
    ]
    listed = b" ".join(b"%d 0 R" % (6 + n) for n in range(count))
    return one_page(stream(text("under the notes")), page=b"/Annots [%s]" % listed, more=notes)


def fonts(count: int = 20_000) -> bytes:
    named = b" ".join(b"/G%d %d 0 R" % (n, 6 + n) for n in range(count))
    used = b"BT 72 500 Td " + b" ".join(b"/G%d 9 Tf (a) Tj" % n for n in range(count)) + b" ET"
    leaf = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R %s >> >> >>" % named
    )
    return pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            leaf,
            stream(text("in many fonts") + used),
            FONT,
            *[b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Name /G%d >>" % n for n in range(count)],
        ]
    )


def outline(depth: int = 30_000, *, cyclic: bool = False) -> bytes:
    """Contents as deep as they are long; or an entry that is its own child and its own neighbour."""
    entries = []
    for n in range(depth):
        inner = b"/First %d 0 R /Last %d 0 R /Count 1" % (8 + n, 8 + n) if n < depth - 1 else b""
        entries.append(b"<< /Title (level %d) /Parent %d 0 R /Dest [3 0 R /Fit] %s >>" % (n, 6 + n, inner))
    if cyclic:
        entries = [b"<< /Title (round and round) /Parent 6 0 R /First 7 0 R /Last 7 0 R /Next 7 0 R /Dest [3 0 R /Fit] /Count 1 >>"]
    whole = one_page(
        stream(text("below the outline")), more=[b"<< /Type /Outlines /First 7 0 R /Last 7 0 R /Count 1 >>", *entries]
    )
    # Longer by the same bytes everywhere behind it: readers mend the table, as they do for hand-edited files.
    return whole.replace(b"/Type /Catalog", b"/Type /Catalog /Outlines 6 0 R", 1)


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
    """A compressed object stream of gigabytes that the page's content has to be looked up in."""
    data = squeezed(b" ", megabytes * MEGABYTE, before=b"9 0 << /Type /Font >>", rounds=2)
    packed = stream(data, b"/Type /ObjStm /N 1 /First 4 " + _filters(2))
    table = (
        b"\x01\x00\x00\x00\x00\x00\x00"
    )
    whole = bytearray(b"%PDF-1.7\n")
    offsets = {}
    for number, body in {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 9 0 R >> >> >>",
        4: stream(text("its font is far away")),
        5: packed,
    }.items():
        offsets[number] = len(whole)
        whole += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    rows = b"\x00\x00\x00\x00\x00\xff\xff"
    rows += b"".join(b"\x01" + offsets[n].to_bytes(4, "big") + b"\x00\x00" for n in range(1, 6))
    rows += b"\x01" + len(whole).to_bytes(4, "big") + b"\x00\x00" + table * 2 + b"\x02" + (5).to_bytes(4, "big") + b"\x00\x00"
    at = len(whole)
    whole += b"6 0 obj\n" + stream(rows, b"/Type /XRef /Size 10 /W [1 4 2] /Root 1 0 R") + b"\nendobj\n"
    return bytes(whole + b"startxref\n%d\n%%%%EOF\n" % at)


def much_text(megabytes: float = 10.0, *, sized: float = 12) -> bytes:
    """A page with far more words than a page holds."""
    line = b"(alpha beta gamma delta epsilon zeta eta theta) Tj 0 -0.01 Td\n"
    count = int(megabytes * MEGABYTE / 48)
    content = b"BT /F1 %g Tf 72 700 Td (the first of them) Tj 0 -20 Td\n" % sized
    return one_page(stream(squeezed(line, count, before=content), _filters(1)))


def one_line_of(part: str, megabytes: float = 2.0) -> bytes:
    """One string without end: blanks, dots, digits, whatever a pattern may stumble over."""
    run = part.encode("latin-1") * int(megabytes * MEGABYTE / len(part))
    return one_page(stream(zlib.compress(text("ahead of the run") + b"BT /F1 0.001 Tf 72 600 Td (" + run + b") Tj ET"), _filters(1)))


def write(path: Path, make: Callable[[], bytes]) -> Path:
    path.write_bytes(make())
    return path
