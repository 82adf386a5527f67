"""A server after a hundred thousand requests, right and wrong ones: all answered as they should be, and no growth."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.served import served
from tests.soak.running import growth
from tests.soak.serving import ServerSoak, samples_index

REQUESTS = 100_000
SETTLED = 10_000  # requests after which everything that is kept is there


@pytest.mark.usefixtures("loopback")
def test_a_hundred_thousand_requests(tmp_path: Path) -> None:
    # With a pool for each thread the C library keeps ever more free memory in pieces: measured is what is held.
    with served(samples_index(tmp_path), tmp_path, env={"MALLOC_ARENA_MAX": "1"}) as server:
        soak = ServerSoak(server, REQUESTS)
        soak.run()
    kilobytes, descriptors = growth(soak.samples, SETTLED)
    print(f"{dict(sorted(soak.statuses.items()))}, {kilobytes:+} kB, {descriptors:+} descriptors")
    for number, resident, opened in soak.samples[:: max(1, len(soak.samples) // 20)]:
        print(f"  {number:7,} requests {resident:9,} kB {opened:4} descriptors")
    assert soak.problems == []
    assert kilobytes < 6_000
    assert descriptors <= 3
