"""What is drawn on a page besides text: its pictures, and whether rules make a table likely.

A device of our own is called for paths and images. PyMuPDF's `get_bboxlog` tells the same, but also of every piece of
text, and keeps it all: slower, and without bound on a page of millions of strokes.
"""

from __future__ import annotations

from typing import Any

from ingest.pdf.mupdf import MupdfError, finite, mupdf_errors, pymupdf
from research.boxes import Box

_MAX_PICTURES = 64
_MAX_PATHS = 4_000  # beyond this a page is a drawing, not a table
_MAX_OPERATORS = 20_000  # beyond this the page is not run on

_mupdf: Any = pymupdf.mupdf


class _DrawingDevice(_mupdf.FzDevice2):  # type: ignore[misc]  # an untyped base
    """Counts what is painted, and stops the page's run when it has seen enough."""

    def __init__(self, cookie: Any) -> None:
        super().__init__()
        self.use_virtual_fill_path()
        self.use_virtual_stroke_path()
        self.use_virtual_fill_image()
        self.use_virtual_fill_image_mask()
        self.cookie = cookie
        self.across = self.upright = self.framed = self.paths = self.operators = 0
        self.images: dict[Box, None] = {}
        self.fault: Exception | None = None  # of our own code: MuPDF would make an error of its own of it

    def fill_path(self, _ctx: Any, path: Any, _even_odd: Any, ctm: Any, *_: Any) -> None:
        self._path(_mupdf.ll_fz_bound_path(path, None, ctm), stroked=False)

    def stroke_path(self, _ctx: Any, path: Any, stroke: Any, ctm: Any, *_: Any) -> None:
        self._path(_mupdf.ll_fz_bound_path(path, stroke, ctm), stroked=True)

    def fill_image(self, _ctx: Any, _image: Any, ctm: Any, *_: Any) -> None:
        self._image(ctm)

    def fill_image_mask(self, _ctx: Any, _image: Any, ctm: Any, *_: Any) -> None:
        self._image(ctm)

    def _path(self, box: Any, *, stroked: bool) -> None:
        try:
            self._count()
            self.paths += 1
            wide, tall = box.x1 - box.x0, box.y1 - box.y0
            self.across += tall <= 3 and wide > 20
            self.upright += wide <= 3 and tall > 8
            # A frame may be one cell, or a whole grid drawn as one path.
            self.framed += stroked and wide > 12 and tall > 6
        except Exception as error:  # noqa: BLE001  raised again after the run
            self._stop(error)

    def _image(self, ctm: Any) -> None:
        try:
            self._count()
            # The image fills the unit square; these are its corners on the page.
            xs = (ctm.e, ctm.e + ctm.a, ctm.e + ctm.c, ctm.e + ctm.a + ctm.c)
            ys = (ctm.f, ctm.f + ctm.b, ctm.f + ctm.d, ctm.f + ctm.b + ctm.d)
            if len(self.images) < _MAX_OPERATORS:
                self.images[(min(xs), min(ys), max(xs), max(ys))] = None
        except Exception as error:  # noqa: BLE001  raised again after the run
            self._stop(error)

    def _count(self) -> None:
        self.operators += 1
        if self.operators >= _MAX_OPERATORS:
            self._stop()

    def _stop(self, fault: Exception | None = None) -> None:
        self.fault = self.fault or fault
        self.cookie.m_internal.abort = 1


def find_drawings(page: Any, width: float, height: float) -> tuple[tuple[Box, ...], bool, bool]:
    """The pictures worth counting, as displayed; whether enough rules are drawn for a table to be likely; and
    whether anything at all is drawn."""
    cookie = _mupdf.FzCookie()
    device = _DrawingDevice(cookie)
    try:
        with mupdf_errors():
            _mupdf.fz_run_page(page.this, device, _mupdf.FzMatrix(), cookie)
            _mupdf.fz_close_device(device)
    except MupdfError:
        return (), False, True  # the text was read; pictures are not worth the page
    if device.fault is not None:
        raise device.fault
    pictures = [box for box in device.images if _is_picture(box, width, height)]
    ruled = device.framed > 0 or (device.across >= 2 and device.upright >= 1)
    return tuple(pictures[:_MAX_PICTURES]), ruled and device.paths <= _MAX_PATHS, device.operators > 0


def _is_picture(box: Box, width: float, height: float) -> bool:
    wide = min(finite(box[2]), width) - max(finite(box[0]), 0.0)
    tall = min(finite(box[3]), height) - max(finite(box[1]), 0.0)
    if wide <= 0 or tall <= 0:
        return False
    return (wide > 64 and tall > 64) or wide * tall >= 0.03 * width * height
