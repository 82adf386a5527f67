"""The name of an uploaded file, made safe: it comes from anywhere and becomes a name on this disk."""

from __future__ import annotations

import re
import unicodedata

NAMELESS = "upload.pdf"

_SUFFIX = ".pdf"
_MOST_BYTES = 180  # of its stem; file systems take 255 bytes, and other names are made from it
_SEPARATORS = re.compile(r"[/\\]")
_FORBIDDEN = re.compile(r'[:*?"<>|]')  # not on every file system, and in the way on a command line
_BLANKS = re.compile(r"\s+")
# Control characters, what turns the direction of text or is not seen, halves of characters, no characters at all.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?")


def safe_name(given: str) -> str:
    """A plain file name that ends in `.pdf`, as near to the given one as is safe."""
    name = _SEPARATORS.split(given)[-1]
    name = unicodedata.normalize("NFC", name.replace("\t", " "))
    name = "".join(char for char in name if unicodedata.category(char) not in _UNSEEN)
    name = _BLANKS.sub(" ", _FORBIDDEN.sub("_", name)).strip()
    stem = name[: -len(_SUFFIX)] if name.lower().endswith(_SUFFIX) else name
    # Not hidden, no option of a command, no blank or dot at the end, where some systems drop it.
    stem = stem.lstrip(".-~ ").rstrip(". ")
    stem = stem.encode()[:_MOST_BYTES].decode(errors="ignore").rstrip(". ")
    if not stem:
        return NAMELESS
    return f"_{stem}{_SUFFIX}" if _DEVICES.fullmatch(stem) else f"{stem}{_SUFFIX}"
