"""How a server was started: where it listens, whom it lets in, and what it does at most."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from research.encoders import usable_cores

_KIB, _MIB = 1024, 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What is done and kept at most; beyond it a request is refused with a status that says so."""

    questions: int = field(default_factory=lambda: max(2, usable_cores()))  # in work at once: more would only wait
    waiting: int = 64  # questions that wait for their turn
    wait_seconds: float = 30.0  # and how long
    question_seconds: float = 60.0  # from its turn to its answer; one that a model writes has the model's own time
    body_bytes: int = 1 * _MIB  # of a request that is no upload
    body_seconds: float = 30.0  # for all of such a body
    idle_body_seconds: float = 20.0  # for the next piece of any body
    upload_bytes: int = 512 * _MIB  # of one request
    upload_files: int = 100
    upload_seconds: float = 3600.0
    header_bytes: int = 32 * _KIB
    header_seconds: float = 10.0  # from the connection to the end of the headers
    connections: int = 512
    jobs: int = 20  # ingests that wait for their turn
    stop_seconds: float = 10.0  # from the signal to the end


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the command line says of a server. It listens on this machine's loopback or a socket file, never wider."""

    port: int = 0  # 0: any free one
    socket: Path | None = None  # instead of a port
    token_file: Path | None = None  # None: the default in the user's state folder
    token_needed: bool = True
    allow_ingest: bool = False
    roots: tuple[Path, ...] = ()  # folders that may be ingested
    hosts: tuple[str, ...] = ()  # names beside those of loopback: of a proxy that stands before it
    cors_origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
