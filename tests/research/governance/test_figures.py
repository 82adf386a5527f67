"""What the base redactor finds in made sentences, and that it leaves real ones alone. `make bench ONLY=redaction` has
more of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.governance.redaction import BaseRedactor
from tests.research.governance.clean import every
from tests.research.governance.made import made

SAMPLES = Path(__file__).parents[3] / "data" / "samples"
# Who is named in the samples, and where they live.
NAMED = (
    "Castellane", "Brandt", "van Dorp", "Olorun", "Achterberg", "Holm", "Ferrin", "Garrow", "Lindqvist",
    "Veitch", "Brask", "Adeyinka", "Whitlock", "Penhale", "Okonjo", "Hathersage", "Iwu", "Marchetti",
    "Oyelaran", "East Quay", "Tarpot Lane", "Limekiln Row",
)  # fmt: skip


def clean_sentences() -> list[str]:
    return [each for each in every(sorted(SAMPLES.glob("*.pdf"))) if not any(name in each for name in NAMED)]


@pytest.mark.parametrize("kind", ["email", "card", "iban", "phone", "key"])
def test_nothing_is_left_of_what_has_to_go(kind: str) -> None:
    redactor, sentences = BaseRedactor("pii"), list(made(1, 100, (kind,)))
    left = [each.text for each in sentences if each.left(redactor.redact(each.text))]
    assert len(left) <= 0.02 * len(sentences), left


def test_sentences_of_real_pages_stay_as_they_are() -> None:
    sentences = clean_sentences()
    assert len(sentences) >= 200
    redactor = BaseRedactor("pii")
    touched = [each for each in sentences if redactor.redact(each) != each]
    assert len(touched) <= 0.02 * len(sentences), touched
