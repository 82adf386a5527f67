"""What happens to packages, told to whoever wants to know: the log, a file of JSON Lines, a stream of Redis.

    events = events_for(settings)
    events.tell(Event("ContextPackageBuilt", package_id=…, …))

An event has ids, numbers, times and who asked; never a text, an intent, a title or a ref. Telling never fails and waits
for nobody: a subscriber that raises is named in the log once and costs the others nothing.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from research.files import make_private_folder
from research.observe import logger_of
from research.packages.cache import RedisLink

if TYPE_CHECKING:
    from research.settings import Settings

STREAM = "ctx:events"
_MOST_IN_STREAM = 10_000
_LARGEST_FILE = 16 << 20  # bytes; then it is put aside, and the one before it goes
_LONGEST = 200  # characters of an id or a name


class Event(dict[str, Any]):
    """What happened, as a line of JSON has it: names as packages have them, and no text longer than an id."""

    def __init__(self, event: str, **told: Any) -> None:
        told["at"] = datetime.now(UTC).isoformat(timespec="milliseconds")
        named = {_camel(name): value[:_LONGEST] if isinstance(value, str) else value for name, value in told.items()}
        super().__init__(event=event, **named)


class Subscriber(Protocol):
    def hear(self, event: Event) -> None:
        """May raise; nobody else is troubled by it."""


class Events:
    """Tells every subscriber. Many threads may use it."""

    def __init__(self, subscribers: Sequence[Subscriber] = ()) -> None:
        self._subscribers = tuple(subscribers)
        self._failed: set[str] = set()

    def tell(self, event: Event) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber.hear(event)
            except Exception as error:  # noqa: BLE001  whatever it does, the package is built and the denial stands
                self._note(type(subscriber).__name__, error)

    def close(self) -> None:
        """Let go of connections; the next event opens them anew."""
        for subscriber in self._subscribers:
            if isinstance(subscriber, StreamSubscriber):
                subscriber.close()

    def _note(self, name: str, error: Exception) -> None:
        if name not in self._failed:
            self._failed.add(name)
            logger_of("events").warning("%s does not hear of events: %s", name, type(error).__name__)


class LogSubscriber:
    def hear(self, event: Event) -> None:
        told = " ".join(f"{name}={_plain(value)}" for name, value in event.items() if value != "")
        logger_of("events").info("%s", told)


class FileSubscriber:
    """A line of JSON for each event, written at once so that several processes may share the file. Beyond 16 MB it is
    renamed to FILE.1, in the place of the one before: there are never more than two."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).expanduser().absolute()
        self._turn = threading.Lock()

    def hear(self, event: Event) -> None:
        line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        with self._turn:
            make_private_folder(self._path.parent)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, line)
                written = os.fstat(descriptor)
            finally:
                os.close(descriptor)
            # Unless another process has just done so, and this name means a new file.
            if written.st_size > _LARGEST_FILE and self._path.stat().st_ino == written.st_ino:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))


class StreamSubscriber:
    """The stream `ctx:events` of a Redis server, of which about the last 10,000 are kept."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    def hear(self, event: Event) -> None:
        fields: dict[Any, Any] = {"event": event["event"], "data": json.dumps(event, separators=(",", ":"))}
        self._link.call(lambda redis: redis.xadd(STREAM, fields, maxlen=_MOST_IN_STREAM, approximate=True))

    def close(self) -> None:
        self._link.close()


def events_for(settings: Settings) -> Events:
    """The log always; a file and a stream where the settings name them."""
    subscribers: list[Subscriber] = [LogSubscriber()]
    if settings.events_file:
        subscribers.append(FileSubscriber(settings.events_file))
    if settings.redis_url:
        subscribers.append(StreamSubscriber(RedisLink(settings.redis_url)))
    return Events(subscribers)


_NAMES = {"package_id": "contextPackageId", "request_id": "contextBuildRequestId", "decision_id": "policyDecisionId"}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return _NAMES.get(name) or first + "".join(word.capitalize() for word in rest)


def _plain(value: object) -> str:
    """On one line, whatever a name holds."""
    return json.dumps(value) if isinstance(value, str) and not value.isalnum() else str(value)
