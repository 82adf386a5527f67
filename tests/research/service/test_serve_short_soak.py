"""A real server under a crowd of right and wrong requests for a few seconds; `make soak` goes on for far longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.served import served
from tests.soak.serving import ServerSoak

REQUESTS = 2_000


@pytest.mark.usefixtures("loopback")
def test_two_thousand_requests(sample_index: Path, tmp_path: Path) -> None:
    with served(sample_index, tmp_path, env={"MALLOC_ARENA_MAX": "1"}) as server:
        soak = ServerSoak(server, REQUESTS)
        soak.run()
    kilobytes, descriptors = soak.growth(REQUESTS // 2)
    assert soak.problems == []
    assert {200, 206, 401, 403, 404, 405, 413, 422} <= set(soak.statuses)
    assert not [status for status in soak.statuses if status >= 500]
    assert kilobytes < 12_000  # what is kept once is not all there yet
    assert descriptors <= 12  # connections come and go
