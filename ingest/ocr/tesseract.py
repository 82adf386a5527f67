"""Tesseract by its binary: one process an image, one thread a process, a limit on its time."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median

from PIL import Image

from ingest.ocr.engine import OcrLine, grey, in_reading_order, is_readable, mean_confidence, read_upright
from ingest.pdf.lines import alnum_count, clean_text
from research.errors import CtxError, OcrError
from research.process import kill_with_parent
from research.records import fractions
from research.store import ledger
from research.text import is_joined_script

_SECONDS_TO_START = 20.0
_SECONDS_AN_IMAGE = 60.0
_SLICE = 1.0
_LANGUAGE_SEPARATOR = re.compile(r"[+,\s]+")
_LANGUAGE = re.compile(r"[A-Za-z_]+")  # what may be the name of one, and part of a command to type
_PAGE_SIDE = 2400  # measured: fewer pixels lose words, more cost time and win nothing
_MIN_VERSION = 4
_WORD_LEVEL = "5"
_TSV_COLUMNS = 12
_POOR = 0.6  # upside down, a page comes to 0.4
_SURE_OF_TURN = 5.0  # right answers on whole pages come with 20 and more
_GAP = 1.5  # letter heights; wider than any space between words of one line

# Which letters stay at the x-height and which go below the baseline, to tell a line's size from its ink.
_LOW = frozenset("acegmnopqrsuvwxyz.,:;-_~")
_DEEP = frozenset("gjpqyQ,;()[]{}$|/@_")
_ASCENT, _X_HEIGHT, _DESCENT = 0.74, 0.52, 0.22


def binary() -> str | None:
    """Where tesseract is, if it is anywhere on the path."""
    return shutil.which("tesseract")


class TesseractEngine:
    """Reads with the tesseract found on the path. Raises `CtxError` where there is none that works."""

    def __init__(self, *, language: str = "", seconds: float = _SECONDS_AN_IMAGE) -> None:
        path = binary()
        if path is None:
            raise CtxError("tesseract is not installed", hint=f"install it with: {_install_command(language)}")
        self._binary = path
        self._seconds = seconds
        self.name = f"tesseract {self._version()}"
        self.page_side = _PAGE_SIDE
        self.language = self._choose_language(language)

    def read(self, image: Image.Image) -> list[OcrLine]:
        flat = grey(image)
        if not is_readable(flat):
            return []
        found = read_upright(flat, self._read, self._turn, poor=_POOR)
        return in_reading_order(_believable([line for line in found if not _is_noise(line)]), flat.size)

    def _read(self, image: Image.Image) -> list[OcrLine]:
        # A resolution it believes keeps tesseract from guessing one for every image.
        table = self._run(("-", "-", "-l", self.language, "--dpi", "200", "tsv"), _bytes_of(image), self._seconds)
        return [line for words in _tsv_lines(table) for line in _segments(words, image.size)]

    def _turn(self, image: Image.Image, _: list[OcrLine]) -> int:
        if not self._knows_turns:
            return 0
        try:
            told = self._run(("-", "-", "-l", "osd", "--psm", "0", "--dpi", "200"), _bytes_of(image), self._seconds)
        except OcrError:
            return 0  # too few letters to tell by
        degrees, sure = re.search(r"Rotate: (\d+)", told), re.search(r"Orientation confidence: ([\d.]+)", told)
        return int(degrees.group(1)) if degrees and sure and float(sure.group(1)) >= _SURE_OF_TURN else 0

    def _version(self) -> str:
        first = self._run(("--version",), b"", _SECONDS_TO_START).split("\n", 1)[0]
        match = re.search(r"(\d+)[\d.]*", first)
        if match is None or int(match.group(1)) < _MIN_VERSION:
            found = first.strip()[:60] or "an unknown version"
            raise CtxError(f"tesseract {_MIN_VERSION} or newer is needed, found {found}", hint=_install_command())
        return match.group()

    def _choose_language(self, wanted: str) -> str:
        listed = self._run(("--list-langs",), b"", _SECONDS_TO_START).splitlines()[1:]
        self._knows_turns = "osd" in listed
        installed = [name.strip() for name in listed if name.strip() and name.strip() != "osd"]
        names = [name for name in _LANGUAGE_SEPARATOR.split(wanted) if name]
        missing = [name for name in names if name not in installed]
        if missing:
            raise CtxError(
                f"tesseract has no data for the language {missing[0]!r}; it has: {', '.join(installed) or 'none'}",
                hint=f"name one of these, or install it with: {_install_command(missing[0])}",
            )
        if not installed:
            raise CtxError("tesseract has no language data", hint=f"install it with: {_install_command('eng')}")
        return "+".join(names) or ("eng" if "eng" in installed else installed[0])

    def _run(self, arguments: tuple[str, ...], data: bytes, seconds: float) -> str:
        environment = {**os.environ, "OMP_THREAD_LIMIT": "1", "LC_ALL": "C"}
        try:
            # A file and not a pipe: what is left to send would be lost when `communicate` is called again.
            with tempfile.TemporaryFile() as image:
                image.write(data)
                image.seek(0)
                process = subprocess.Popen(
                    [self._binary, *arguments],
                    stdin=image,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=environment,
                    start_new_session=True,
                    preexec_fn=kill_with_parent,  # noqa: PLW1509  one system call; this process has one thread
                )
        except OSError as error:
            raise OcrError(f"tesseract cannot be started: {error.strerror}") from error
        with process:
            try:
                out, complaints = _communicate(process, seconds)
            except subprocess.TimeoutExpired as error:
                _kill(process)
                raise OcrError(f"tesseract took more than {seconds:g} seconds", code=ledger.TIMEOUT) from error
            except BaseException:
                _kill(process)
                raise
        if process.returncode < 0:
            raise OcrError(f"tesseract was killed by signal {-process.returncode}", code=ledger.KILLED)
        if process.returncode != 0:
            last = clean_text(complaints.decode("utf-8", "replace").strip().rpartition("\n")[2])[:200]
            raise OcrError(f"tesseract failed: {last or f'exit code {process.returncode}'}")
        return out.decode("utf-8", "replace")


def _install_command(language: str = "") -> str:
    """What to type to get tesseract, or more of its languages (which bring it along)."""
    names = [name for name in _LANGUAGE_SEPARATOR.split(language) if _LANGUAGE.fullmatch(name)]
    if sys.platform == "darwin":
        return "brew install tesseract-lang" if names else "brew install tesseract"
    packages = [f"tesseract-ocr-{name.replace('_', '-').lower()}" for name in names]
    return f"sudo apt install {' '.join(packages or ['tesseract-ocr'])}"


def _bytes_of(image: Image.Image) -> bytes:
    data = io.BytesIO()
    image.save(data, "PPM")
    return data.getvalue()


def _communicate(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bytes]:
    """Its output, if it ends in time. Time in which this process was stopped (Ctrl-Z) counts as one slice at most."""
    left = seconds
    while True:
        try:
            return process.communicate(timeout=min(_SLICE, left))
        except subprocess.TimeoutExpired:
            left -= _SLICE
            if left <= 0:
                raise


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End it and whatever it started, so that nothing keeps its pipes open."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


@dataclass(frozen=True, slots=True)
class _Word:
    """A word as tesseract sees it, in pixels; its box lies close around the ink."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    confidence: float

    @property
    def size(self) -> float:
        """The height of the font, from the highest letter to the deepest, whichever the word has."""
        return (self.y1 - self.y0) / (self._rise + self._fall)

    @property
    def baseline(self) -> float:
        return self.y1 - self._fall * self.size

    @property
    def middle(self) -> float:
        return (self.x0 + self.x1) / 2

    @property
    def _rise(self) -> float:
        return _X_HEIGHT if _LOW.issuperset(self.text) else _ASCENT

    @property
    def _fall(self) -> float:
        return _DESCENT if not _DEEP.isdisjoint(self.text) else 0.0


def _tsv_lines(table: str) -> Iterator[list[_Word]]:
    """The words of each line, in tesseract's order."""
    # level, page, block, paragraph, line, word, left, top, width, height, confidence, text
    rows = (row.split("\t", _TSV_COLUMNS - 1) for row in table.split("\n"))
    words = (row for row in rows if row[0] == _WORD_LEVEL and len(row) == _TSV_COLUMNS)
    for _, group in groupby(words, key=lambda row: row[1:5]):
        line = [word for row in group if (word := _word(row))]
        if line:
            yield line


def _word(row: list[str]) -> _Word | None:
    text = clean_text(row[-1])
    if not text:
        return None
    x0, y0, wide, tall, confidence = map(float, row[6:11])
    return _Word(text, x0, y0, x0 + wide, y0 + tall, max(0.0, confidence / 100))


def _segments(line: list[_Word], size: tuple[int, int]) -> Iterator[OcrLine]:
    """A line cut where the gap between two words is wide, as between a table's cells."""
    height = _height(line) or max(word.y1 - word.y0 for word in line)
    slope = _slope(line, height)
    segment = [line[0]]
    for left, right in pairwise(line):
        if max(right.x0 - left.x1, left.x0 - right.x1) > _GAP * height:
            yield from _segment(segment, height, slope, size)
            segment = []
        segment.append(right)
    yield from _segment(segment, height, slope, size)


def _segment(words: list[_Word], line_height: float, slope: float, size: tuple[int, int]) -> Iterator[OcrLine]:
    while words and _is_speck(words[0]):
        words = words[1:]
    while words and _is_speck(words[-1]):
        words = words[:-1]
    if not words:
        return
    height = _height(words) or line_height
    baselines = [word.baseline for word in words]
    box = (
        min(word.x0 for word in words),
        min(baselines) - _ASCENT * height,
        max(word.x1 for word in words),
        max(baselines) + _DESCENT * height,
    )
    letters = sum(len(word.text) for word in words)
    confidence = sum(word.confidence * len(word.text) for word in words) / letters
    yield OcrLine(_spoken(words), fractions(box, *size), round(confidence, 3), slope)


def _height(words: list[_Word]) -> float:
    """The usual size of the words; a dash or a dot says nothing of it."""
    return median([word.size for word in words if alnum_count(word.text)] or [0.0])


def _spoken(words: list[_Word]) -> str:
    text = words[0].text
    for left, right in pairwise(words):
        text += right.text if is_joined_script(left.text[-1]) and is_joined_script(right.text[0]) else f" {right.text}"
    return text


def _slope(line: list[_Word], height: float) -> float:
    """The skew of a line, from the baselines of its first and last third; 0 where it is too short to tell."""
    third = len(line) // 3
    first, last = line[: third or 1], line[-(third or 1) :]
    run = median(word.middle for word in last) - median(word.middle for word in first)
    if run < 6 * height:
        return 0.0
    rise = median(word.baseline for word in last) - median(word.baseline for word in first)
    slope = rise / run
    return slope if abs(slope) < 0.15 else 0.0


def _is_speck(word: _Word) -> bool:
    """Rules, frames and dirt taken for punctuation, at the ends of a line."""
    return word.confidence < 0.6 and not alnum_count(word.text)


def _is_noise(line: OcrLine) -> bool:
    """What tesseract sees in photographs and textures: few letters, or letters it does not believe itself."""
    known, words = alnum_count(line.text), len(line.text.split())
    if not known:
        return line.confidence < 0.8  # a table's dash, if it is sure of it
    if line.confidence < 0.3:
        return True
    if known <= 2 * words or 2 * known < len(line.text.replace(" ", "")):
        return line.confidence < 0.6
    return line.confidence < 0.45 and known < 0.7 * len(line.text)


def _believable(lines: list[OcrLine]) -> list[OcrLine]:
    """Of an image that reads as gibberish, only what stands out as words."""
    if mean_confidence(lines) >= 0.55 or len(lines) > 15:
        return lines
    return [line for line in lines if line.confidence >= 0.75]
