"""Page images and thumbnails, drawn by the reading processes into folders that are then put in place whole."""

from __future__ import annotations

from ingest.jobs import UNREADABLE, DocumentFailed, DocumentRendered, Job, PageFailed
from ingest.stages.base import Work, has_unfinished, is_same_file, pages_to_skip, report_failures, unfinished_files
from research.records import FailedPage
from research.store.catalog.document_writes import mark_drawn
from research.store.catalog.ledger import STAGE_IMAGES, WHOLE
from research.store.files import images
from research.store.files.paths import make_folder
from research.store.vectors import generations


class RenderStage:
    name = "render"

    def pending(self, work: Work) -> bool:
        return work.settings.images and has_unfinished(work, STAGE_IMAGES)

    def run(self, work: Work) -> None:
        spool = work.catalog.paths.spool
        jobs = [
            Job(
                "render",
                path,
                doc_id,
                spool / f"{doc_id}.images",
                skip_pages=pages_to_skip(work, doc_id, STAGE_IMAGES),
            )
            for doc_id, path in unfinished_files(work, STAGE_IMAGES)
        ]
        if not jobs:
            return
        make_folder(spool)
        generation = generations.current(work.catalog)
        published = generation.through_seq if generation else 0
        done = 0
        failed: dict[str, dict[int, FailedPage]] = {}
        for event in work.pool.run(jobs):
            doc_id = event.job.doc_id
            if isinstance(event, PageFailed):
                page = FailedPage(event.page, STAGE_IMAGES, event.code, event.reason, event.tries)
                failed.setdefault(doc_id, {})[event.page] = page
            elif isinstance(event, DocumentRendered | DocumentFailed) and is_same_file(work, event.job):
                _finish(work, event, list(failed.get(doc_id, {}).values()), published)
                done += 1
                work.observer.on_render(done, len(jobs))


def _finish(work: Work, event: DocumentRendered | DocumentFailed, failed: list[FailedPage], published: int) -> None:
    """Put a document's images in place, or note why it has none. A file that cannot be opened just now keeps its
    entry in the ledger, and is tried again by the next run; what else fails as a whole would do so again."""
    doc_id = event.job.doc_id
    if isinstance(event, DocumentRendered):
        images.adopt(work.catalog.paths, doc_id, event.job.output)
        mark_drawn(work.catalog, doc_id, event.pages, published=published, failed=failed)
    else:
        failed = [FailedPage(WHOLE, STAGE_IMAGES, event.code, event.reason, event.tries)]
        if event.code != UNREADABLE:
            mark_drawn(work.catalog, doc_id, [], published=published, failed=failed)
    report_failures(work, doc_id, failed)
