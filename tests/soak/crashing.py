"""Killing a run again and again, and what must hold after each kill and at the end."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from random import Random
from typing import Any

from tests.soak.contents import assert_same, assert_whole, contents
from tests.soak.corpus import QUESTIONS
from tests.soak.running import finish, kill, run, start, wait_until, writing


class CrashTest:
    """One corpus, the contents that an undisturbed run makes of it, and an index that is killed over and over."""

    def __init__(self, docs: Path, folder: Path, *options: str, questions: tuple[str, ...] = QUESTIONS) -> None:
        self._questions = questions
        self._arguments = ("ingest", str(docs), "--quiet", *options)
        self._root = folder / "index"
        calm = folder / "undisturbed"
        process = start(*self._arguments, root=calm)
        wait_until(lambda: writing(calm), process)
        begun = time.monotonic()
        code, _, err = finish(process)
        assert code == 0, err
        self._seconds = time.monotonic() - begun
        self.expected: dict[str, Any] = contents(calm, questions)
        self.kills = 0
        self.rounds = 0

    def kill_at_random(self, times: int, random: Random) -> None:
        """Kill and resume; an index that gets finished in between is compared and begun anew."""
        while self.kills < times:
            process = start(*self._arguments, root=self._root)
            moment = random.uniform(0.0, 0.8 * self._seconds)
            if not wait_until(lambda: writing(self._root), process):
                continue
            until = time.monotonic() + moment
            if wait_until(lambda until=until: time.monotonic() >= until, process):  # type: ignore[misc]
                kill(process, group=random.random() < 0.8)
                self.kills += 1
                self._ask(random)
            else:
                code, _, err = finish(process)
                assert code == 0, err
                self._compare()
                self.begin_anew()
        self.finish()

    def begin_anew(self) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    def kill_when(self, reached: Any, *, group: bool = True) -> None:
        """Kill once at the moment that `reached` sees from outside."""
        process = start(*self._arguments, root=self._root)
        if wait_until(lambda: bool(reached(self._root)), process):
            kill(process, group=group)
            self.kills += 1
            assert_whole(self._root)
        else:
            finish(process)

    def finish(self) -> None:
        code, _, err = run(*self._arguments, root=self._root)
        assert code == 0, err
        self._compare()

    def _compare(self) -> None:
        self.rounds += 1
        assert_whole(self._root)
        assert_same(contents(self._root, self._questions), self.expected)

    def _ask(self, random: Random) -> None:
        """An answer from whole documents, or the word that there is nothing yet."""
        before = assert_whole(self._root)
        code, out, err = run("ask", random.choice(QUESTIONS), "--json", root=self._root)
        answer = json.loads(out)
        # Before there are vectors, a question finds only the documents that share its words.
        assert code in (0, 3), err
        assert answer["schema"] == ("ctx.ask/2" if before else "ctx.error/1")
        assert bool(answer.get("sources")) == (code == 0)
