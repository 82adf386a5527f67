"""A Chromium for the tests of the web page: the one of this machine, or one that is brought.

    python tests/browser.py .venv/browser

`make test` runs it before the tests. It leaves the browser's path in the file `path` of that folder; a second run finds
it there. Where none is installed it is Debian's, if whoever runs this may install it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
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

_PAGE, _SHOWN = "data:text/html,<script>document.write(1357 * 2)</script>", "2714"
_SECONDS = 60


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


def bring(folder: Path) -> Path:
    """Install a browser. Raises SystemExit with what to do if that does not work."""
    print("there is no Chromium for the tests of the web page: apt-get install chromium", flush=True)
    try:
        return debians(folder)
    except (NotFoundError, OSError, subprocess.SubprocessError) as error:
        raise SystemExit(
            f"no browser for the tests of the web page ({error}): install Chromium, and try again"
        ) from None


def _run(command: list[str], env: dict[str, str] | None = None) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    except subprocess.CalledProcessError as error:
        raise NotFoundError(" ".join(_last_lines(error.stderr or error.stdout))) from error


def _last_lines(text: str) -> Iterator[str]:
    yield from [line.strip() for line in text.strip().splitlines()[-3:]]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = next(filter(works, known(folder)), None) or bring(folder)
    (folder / "path").write_text(f"{path.absolute()}\n", encoding="utf-8")
    print(f"the web page is tested in {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
