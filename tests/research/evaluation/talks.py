"""Two conversations, and questions to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

QUESTIONS: list[dict[str, Any]] = [
    {"qid": "a", "conversation": "one", "query": "What did Ann paint?", "gold": ["D1:1"], "category": 4},
    {"qid": "b", "conversation": "two", "query": "What is the dog's name?", "gold": ["D1:1", "D1:9"], "category": 1},
    {"qid": "c", "conversation": "two", "query": "Who won the race?", "gold": ["D1:7"], "category": 1},
]
TALKS = {
    "one": ["Ann: I painted a lake.", "Bob: The dog is called Rex.", "Ann: I am tired of it all."],
    "two": ["Cay: Our dog is called Minka.", "Dan: Lovely!", "Cay: She is a poodle."],
}


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def write_set(folder: Path) -> Path:
    for name, turns in TALKS.items():
        lines = []
        for number, turn in enumerate(turns, start=1):
            speaker, _, text = turn.partition(": ")
            entry = {"id": f"D1:{number}", "speaker": speaker, "text": text, "session": "s1"}
            lines.append(entry | {"timestamp": "2023-05-08T13:56:00+00:00"})
        write_lines(folder / f"{name}.memories.jsonl", lines)
    return write_lines(folder / "qrels.jsonl", QUESTIONS)
