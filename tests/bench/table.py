"""Printing of measurements: what, how much, and what it is held against."""

from __future__ import annotations


def title(text: str) -> None:
    print(f"\n## {text}\n", flush=True)


def line(what: str, value: str, against: str = "") -> None:
    print(f"{what:<58} {value:>14}   {against}", flush=True)


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
