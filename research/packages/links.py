"""What opens the whole of a source."""

from __future__ import annotations

from research.models import Item, page_link


def link_of(item: Item) -> str:
    """A file at its page or line; of what has no file its ref, by which ctx finds it."""
    if item.ref.kind == "page":
        return page_link(str(item.metadata.get("source_path", "")), int(item.ref.part))
    if item.ref.kind == "code":
        return page_link(item.ref.key, 1).removesuffix("#page=1") + f"#L{item.metadata.get('start_line', 1)}"
    return str(item.ref)
