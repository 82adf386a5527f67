"""Packages built by several threads while their Redis is killed and comes back."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path

from research.index import Index
from research.settings import Settings
from tests.research.packages.redis_server import RedisServer

INTENTS = ("why do uploads stop", "how often is a part sent again", "who owns the upload queue", "borders of tables")


class PackageBuilding:
    """`problems` holds whatever was not answered, or answered with something else than was built."""

    def __init__(self, root: Path, *, builds: int, threads: int = 4, seed: int = 1) -> None:
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self._root, self._builds, self._threads = root, builds, threads
        self._random = random.Random(seed)
        self._left = iter(range(builds))
        self._turn = threading.Lock()
        self._kills = sorted(self._random.sample(range(builds), 6))
        self._server = RedisServer()
        self._running = True

    def run(self) -> None:
        self._server.start()
        try:
            with Index.open(self._root, Settings(redis_url=self._server.url)) as index:
                workers = [threading.Thread(target=self._work, args=(index,)) for _ in range(self._threads)]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()
        finally:
            self._server.close()

    def _work(self, index: Index) -> None:
        while (number := self._next()) is not None:
            try:
                self._build(index, number)
            except Exception as error:  # noqa: BLE001  whatever it is, it is no answer
                self.problems.append(f"{number}: {type(error).__name__}: {error}")

    def _next(self) -> int | None:
        """The number of a build; at some of them Redis goes, or comes back."""
        with self._turn:
            number = next(self._left, None)
            if number in self._kills:
                self.counts["killed" if self._running else "started"] += 1
                if self._running:
                    self._server.kill()
                else:
                    self._server.start()
                self._running = not self._running
            return number

    def _build(self, index: Index, number: int) -> None:
        intent = f"{INTENTS[number % len(INTENTS)]} ({number})"
        built = index.packages.build({"intent": intent, "tokenBudget": 300, "taskId": f"task-{number}"})
        again = index.packages.get(built.context_package_id)
        self.counts["answered"] += 1
        self.counts["built anew"] += again.policy_decision_id != built.policy_decision_id  # the index has changed
        same = again.content == built.content and again.context_package_id == built.context_package_id
        if not same or built.task_id != f"task-{number}" or built.tokens_used > 300 or not built.sources:
            self.problems.append(f"{number}: another package than was built")
