"""The doctor's proof that nothing is reported: the parts that would are tried out, and what they leave is looked at."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from research.lazy import switch_off

_HOMES = ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "LOCALAPPDATA", "APPDATA")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the encoder and Chroma did in a home of their own."""

    left_behind: tuple[str, ...]  # files they wrote there: a device id, a queue of events
    chroma_reports: bool  # what Chroma's settings say
    ran: bool = True


def look() -> Seen:
    """Run the encoder and open Chroma once in a process with an empty home, and see what that leaves there."""
    with tempfile.TemporaryDirectory(prefix="ctx-telemetry-") as folder:
        home, work = Path(folder, "home"), Path(folder, "work")
        home.mkdir()
        work.mkdir()
        environment = {**os.environ, **dict.fromkeys(_HOMES, str(home)), "PYTHONPATH": _our_home()}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "research.index.telemetry_check", str(work)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        left = sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())
    return Seen(tuple(left), chroma_reports=done.stdout.strip() != "off", ran=done.returncode == 0)


def _our_home() -> str:
    return str(Path(__file__).parent.parent)


def _try_out(folder: Path) -> None:
    from research.encoders import load_text_encoder
    from research.store import open_client

    load_text_encoder().embed_query("telemetry")
    client = open_client(folder)
    sys.stdout.write("on" if client.get_settings().anonymized_telemetry else "off")
    client.close()


if __name__ == "__main__":
    switch_off()
    _try_out(Path(sys.argv[1]))
