"""Index: the one object that the command line, the library and every service use.

    with Index.open(".ctx") as index:
        context = index.ask("What caused the crisis?", max_tokens=4000)
        print(context.formatted_text)

An open index may be used from many threads and for days. Each question reads one snapshot of the catalog; new
generations of the collections and another encoder are followed by themselves. Whatever changes the index takes its
write lock for as long as it takes, and no longer.
"""

from __future__ import annotations

from research.index.asking import Asking
from research.index.conversation import Conversation
from research.index.documents import Documents
from research.index.experiences import ExperienceMethods
from research.index.governed import Governed
from research.index.upkeep import Upkeep
from research.index.writing import Writing


class Index(Asking, Writing, Documents, Conversation, ExperienceMethods, Governed, Upkeep):
    """An index in a folder. Nothing of it is opened before it is needed; `Index.open` does so at once.

    Reading is safe from many threads. Methods that change the index take its write lock; `wait` is how many seconds
    another writer is waited for, and BusyError what comes then.
    """
