"""Drafts of a generation: private copies that a writer works on until one rename publishes them."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

from research.store.files.paths import make_folder, make_tree_private, refuse_link, remove_tree, sync
from research.store.vectors.generations import DATABASE, MANIFEST, Generation, Stamp, crc_of, drop_older, numbered

_DRAFT = "draft"


def start_draft(folder: Path, base: Generation | None) -> Path:
    """An empty private folder, or a copy of `base`, to write into."""
    draft = folder / _DRAFT
    make_folder(folder)
    drop_draft(folder)
    refuse_link(draft)
    if base is None:
        draft.mkdir(mode=0o700)
    else:
        shutil.copytree(base.path, draft)
        (draft / MANIFEST).unlink(missing_ok=True)  # a reader may have invalidated it meanwhile
    return draft


def publish_draft(folder: Path, draft: Path, contents: Generation) -> Generation:
    """Make the draft the newest generation, with these `contents`; path and number are given here. Older ones go,
    except the one readers may be opening now."""
    number = max((n for n, _ in numbered(folder)), default=0) + 1
    stamps = [_stamp(path, draft) for path in _data_files(draft)]
    for path in draft.rglob("*"):
        sync(path)
    manifest = {
        "catalog_id": contents.catalog_id,
        "upto": contents.through_seq,
        "text_records": contents.text_records,
        "visual_records": contents.visual_records,
        "visual_upto": contents.visual_through_seq,
        "revision": contents.revision,
        "database_size": (draft / DATABASE).stat().st_size,
        "files": [asdict(stamp) for stamp in stamps],
    }
    (draft / MANIFEST).write_text(json.dumps(manifest, indent=1))
    make_tree_private(draft)  # Chroma makes its files as it pleases
    sync(draft / MANIFEST)
    target = folder / f"gen-{number:06d}"
    draft.rename(target)
    sync(folder)
    drop_older(folder, number)
    return replace(contents, path=target, number=number)


def has_draft(folder: Path) -> bool:
    return (folder / _DRAFT).exists()


def drop_draft(folder: Path) -> None:
    """Remove what a stopped writer left. Only for the holder of the write lock."""
    if not folder.is_symlink():
        remove_tree(folder / _DRAFT)


def _data_files(draft: Path) -> list[Path]:
    return sorted(p for p in draft.rglob("*") if p.is_file() and not p.name.startswith(DATABASE))


def _stamp(path: Path, draft: Path) -> Stamp:
    stat = path.stat()
    return Stamp(path.relative_to(draft).as_posix(), stat.st_size, stat.st_mtime_ns, crc_of(path))
