from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ocr_tools import FakeTesseract, box_of, draw, noisy, skewed
from PIL import Image

from ingest.ocr import choose_engine
from ingest.ocr.engine import OcrEngine, OcrLine
from ingest.ocr.tesseract import TesseractEngine
from research.errors import CtxError, OcrError, UsageError

WORDS = [
    (30.0, 40.0, "The harbour closed in March 1962"),
    (30.0, 70.0, "after forty ships were lost."),
    (200.0, 110.0, "Signed by the harbour master"),
]
WIDTH, HEIGHT = 400.0, 140.0


def plain(text: str) -> str:
    return re.sub(r"\W+", "", text.lower())


def find(lines: list[OcrLine], text: str) -> OcrLine:
    return next(line for line in lines if plain(text) in plain(line.text))


def test_reads_words_with_boxes_and_confidence(engine: OcrEngine) -> None:
    lines = engine.read(draw(WIDTH, HEIGHT, WORDS))
    assert [plain(line.text) for line in lines] == [plain(text) for _, _, text in WORDS]
    for placed, line in zip(WORDS, lines, strict=True):
        assert line.box == pytest.approx(box_of(WIDTH, HEIGHT, placed), abs=0.035)
        assert 0.7 < line.confidence <= 1


@pytest.mark.slow
@pytest.mark.parametrize("degrees", [-2.0, 1.0, 2.0])
def test_reads_skewed_and_grainy_scans(engine: OcrEngine, degrees: float) -> None:
    lines = engine.read(noisy(skewed(draw(WIDTH, HEIGHT, WORDS), degrees)))
    text = plain("".join(line.text for line in lines))
    assert "harbourclosedinmarch1962" in text
    assert "fortyshipswerelost" in text


@pytest.mark.slow
def test_the_skew_of_a_line_is_told(engine: OcrEngine) -> None:
    line = find(engine.read(skewed(draw(WIDTH, HEIGHT, WORDS), -2.0)), "harbour closed")
    assert line.slope == pytest.approx(0.035, abs=0.012)  # the tangent of two degrees, downwards


@pytest.mark.slow
def test_two_columns_are_read_one_after_the_other(engine: OcrEngine) -> None:
    left = ["Ships that leave the old", "harbour in winter carry", "salt and timber to the", "islands in the north."]
    right = [
        "Ships that come back in",
        "spring bring wool, stone",
        "and dried fish, which the",
        "market sells at once.",
    ]
    words = [(20.0, 30.0 + 18 * i, text) for i, text in enumerate(left)]
    words += [(230.0, 33.0 + 18 * i, text) for i, text in enumerate(right)]
    lines = engine.read(draw(400, 110, words))
    assert [plain(line.text) for line in lines] == [plain(text) for text in left + right]


@pytest.mark.parametrize("kind", ["transparent", "colour"])
def test_takes_images_of_any_mode(engine: OcrEngine, kind: str) -> None:
    image = draw(200, 50, [(20, 30, "Lighthouse keeper")])
    source = image.convert("RGB")
    if kind == "transparent":
        source = Image.new("RGBA", image.size, (0, 0, 0, 0))
        source.paste((0, 0, 0, 255), mask=image.point(lambda shade: 255 - shade))
    assert plain(engine.read(source)[0].text) == "lighthousekeeper"


@pytest.mark.parametrize(
    "image",
    [
        Image.new("L", (1, 1), 0),
        Image.new("L", (3000, 2), 0),
        Image.new("L", (300, 200), 255),
        Image.new("RGB", (300, 200), "black"),
        noisy(Image.new("L", (300, 200), 128), strength=40),
    ],
    ids=["one pixel", "a rule", "white", "black", "grain"],
)
def test_nothing_to_read_gives_no_lines(engine: OcrEngine, image: Image.Image) -> None:
    assert engine.read(image) == []


@pytest.mark.slow
def test_an_image_too_large_is_scaled_down(engine: OcrEngine) -> None:
    image = draw(200, 50, [(20, 30, "Lighthouse keeper")]).resize((6000, 1500))
    assert plain(engine.read(image)[0].text) == "lighthousekeeper"


@pytest.mark.slow
def test_nothing_is_printed_and_nothing_fetched(engine: OcrEngine) -> None:
    """In a fresh process, where a socket is an error."""
    code = (
        "import socket, sys\n"
        "def refuse(*_): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "from PIL import Image, ImageDraw\n"
        "from ingest.ocr import choose_engine\n"
        "image = Image.new('L', (300, 60), 255)\n"
        "ImageDraw.Draw(image).text((10, 10), 'Lighthouse', font_size=30)\n"
        f"assert choose_engine({engine.name.split()[0]!r}).read(image)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_choosing_loads_no_models() -> None:
    code = (
        "import sys\nfrom ingest.ocr import choose_engine\nchoose_engine('auto')\nchoose_engine('rapidocr')\n"
        "assert not {'rapidocr', 'cv2', 'onnxruntime', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_tell_program_and_version(engine: OcrEngine) -> None:
    assert re.fullmatch(r"(tesseract|rapidocr) \d+\.\d+(\.\d+)?", engine.name)


def test_auto_takes_tesseract_where_it_works(fake_tesseract: FakeTesseract) -> None:
    fake_tesseract.write("exit 1")
    assert choose_engine().name == "tesseract 5.9.9"


@pytest.mark.parametrize("fault", ["absent", "old", "without languages", "broken"])
def test_auto_takes_rapidocr_where_tesseract_does_not_work(fake_tesseract: FakeTesseract, fault: str) -> None:
    if fault == "old":
        fake_tesseract.write("exit 1", version="3.04.01")
    elif fault == "without languages":
        fake_tesseract.write("exit 1", languages="osd")
    elif fault == "broken":
        fake_tesseract.write("exit 1").write_text("#!/bin/sh\nexit 127\n")
    assert choose_engine().name.startswith("rapidocr ")


def test_a_missing_tesseract_names_the_command(fake_tesseract: FakeTesseract, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(CtxError, match="not installed") as linux:
        choose_engine("tesseract")
    assert "sudo apt install tesseract-ocr" in linux.value.hint
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(CtxError) as mac:
        choose_engine("tesseract")
    assert "brew install tesseract" in mac.value.hint


def test_a_missing_rapidocr_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.ocr.engine.find_spec", lambda _: None)
    with pytest.raises(CtxError, match="rapidocr is not installed") as error:
        choose_engine("rapidocr")
    assert "pip install 'rapidocr" in error.value.hint


def test_rapidocr_without_its_models_downloads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = choose_engine("rapidocr")
    monkeypatch.setattr(engine, "_models", tmp_path)
    with pytest.raises(CtxError, match="models are missing") as error:
        engine.read(draw(200, 50, [(20, 30, "Lighthouse keeper")]))
    assert "--force-reinstall" in error.value.hint


def test_an_unknown_engine_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="no OCR engine"):
        choose_engine("abbyy")


def test_a_missing_language_names_the_command(fake_tesseract: FakeTesseract, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    fake_tesseract.write("exit 1", languages="eng deu")
    with pytest.raises(CtxError, match="'chi_sim'") as error:
        choose_engine("auto", language="eng+chi_sim")
    assert "sudo apt install tesseract-ocr-chi-sim" in error.value.hint
    assert "it has: eng, deu" in error.value.message
    assert TesseractEngine(language="deu").language == "deu"
    assert TesseractEngine(language="deu, eng").language == "deu+eng"
    assert TesseractEngine().language == "eng"
    with pytest.raises(CtxError) as error:
        TesseractEngine(language="deu;reboot")
    assert "reboot" not in error.value.hint, "what cannot be a language is no part of a command"
    fake_tesseract.write("exit 1", languages="osd fra")
    assert TesseractEngine().language == "fra", "without English the installed one is taken"


def test_a_language_needs_tesseract(fake_tesseract: FakeTesseract, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one rapidocr would read it, and does not know it."""
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(CtxError, match="tesseract is not installed") as absent:
        choose_engine("auto", language="deu+eng")
    assert "sudo apt install tesseract-ocr-deu tesseract-ocr-eng" in absent.value.hint
    with pytest.raises(UsageError, match="cannot be told a language") as wrong:
        choose_engine("rapidocr", language="deu")
    assert "--ocr-engine tesseract" in wrong.value.hint


def test_a_failing_tesseract_tells_its_reason(fake_tesseract: FakeTesseract) -> None:
    fake_tesseract.write('echo "Estimating resolution" >&2; echo "Error in pixReadStream" >&2; exit 1')
    with pytest.raises(OcrError, match="tesseract failed: Error in pixReadStream"):
        TesseractEngine().read(draw(200, 50, [(20, 30, "Lighthouse keeper")]))


def test_a_hanging_tesseract_is_ended_with_all_it_started(fake_tesseract: FakeTesseract, tmp_path: Path) -> None:
    child = tmp_path / "child"
    fake_tesseract.write(f'sleep 600 & echo $! > "{child}"; wait')
    for seconds in (0.3, 3, 30):
        with pytest.raises(OcrError, match=f"more than {seconds} seconds"):
            TesseractEngine(seconds=seconds).read(draw(200, 50, [(20, 30, "Lighthouse keeper")]))
        if child.exists() and child.read_text():  # a busy machine may not have come so far
            break
    while _alive(int(child.read_text())):
        time.sleep(0.01)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat")
        return not state.exists() or state.read_text().split()[2] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


TSV_HEAD = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"


def tsv(*words: tuple[int, int, int, int, int, float, str]) -> str:
    """A table of words: line, left, top, width, height, confidence, text."""
    rows = [TSV_HEAD]
    for number, (line, *place, confidence, text) in enumerate(words, start=1):
        rows.append("\t".join(map(str, (5, 1, 1, 1, line, number, *place, confidence, text))))
    return "\n".join(rows)


def told(fake: FakeTesseract, table: str) -> list[OcrLine]:
    (fake.folder / "table.tsv").write_text(table + "\n")
    fake.write(f'cat > /dev/null; cat "{fake.folder}/table.tsv"')
    return TesseractEngine().read(noisy(Image.new("L", (1000, 500), 200)))


def test_a_wide_gap_cuts_a_line(fake_tesseract: FakeTesseract) -> None:
    lines = told(
        fake_tesseract,
        tsv((1, 50, 100, 60, 20, 95, "Total"), (1, 118, 100, 80, 20, 95, "assets"), (1, 600, 100, 70, 20, 90, "4,711")),
    )
    assert [line.text for line in lines] == ["Total assets", "4,711"]
    assert lines[1].box[0] == pytest.approx(0.6)


def test_specks_texture_and_bad_bytes_are_dropped(fake_tesseract: FakeTesseract) -> None:
    words = [
        (1, 50, 60, 93, '"Harbour'),
        (1, 115, 5, 22, "|"),
        (2, 50, 60, 21, "heetewe"),
        (3, 50, 10, 48, "a"),
        (3, 65, 10, 52, "“>"),
        (4, 50, 10, 91, "7"),
        (5, 50, 90, 68, "Löschboot"),
        (6, 50, 60, 93, "master\x1b[31m"),
    ]
    lines = told(fake_tesseract, tsv(*((row, x, 50 * row, wide, 20, sure, text) for row, x, wide, sure, text in words)))
    assert [line.text for line in lines] == ['"Harbour', "7", "Löschboot", "master[31m"]


@pytest.mark.parametrize("table", ["", "nothing of a table", TSV_HEAD, TSV_HEAD + "\n5\t1\t1"])
def test_a_table_that_is_none_gives_no_lines(fake_tesseract: FakeTesseract, table: str) -> None:
    assert told(fake_tesseract, table) == []
