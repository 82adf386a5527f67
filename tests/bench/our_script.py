"""ctx as a library, asked many questions in one process; prints what `plain_script.py ask` prints.

python our_script.py INDEX QUESTION…
"""

from __future__ import annotations

import json
import sys
import time

from research import ChromaClient, ContextBuilder, SearchEngine

if __name__ == "__main__":
    with ChromaClient(sys.argv[1]) as client:
        builder = ContextBuilder(SearchEngine(client), client)
        for question in sys.argv[2:]:
            started = time.perf_counter()
            context = builder.build(question, 10)
            # Pages found, not only those that fit the budget; the context is part of the time.
            ranked = [*context.sources, *context.dropped]
            pages = [[source.filename, source.page] for source in ranked]
            print(json.dumps({"seconds": time.perf_counter() - started, "pages": pages}))
