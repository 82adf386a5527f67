"""The console script. Nothing is imported before the handler stands that turns every failure into a line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial


def main(args: Sequence[str] | None = None, *, system: str = os.name, leave: bool = False) -> int:
    """Run one command line and return its exit code. Never raises, unless `--debug` asks for the traceback.

    `leave` ends the process at once instead. All that matters is written, flushed and closed by then, and to take the
    interpreter and its libraries apart would cost a cold question another tenth of a second.
    """
    args = list(sys.argv[1:] if args is None else args)
    if system != "posix":  # before anything is imported that is not there
        sys.stderr.write("ctx: error: ctx needs a POSIX system: Linux, macOS, or on Windows the Linux of WSL\n")
        return 1
    try:
        from cli.output import prepare_streams, version_line, write
        from research.lazy import switch_off

        switch_off()
        prepare_streams()
        if args in (["--version"], ["-V"]):  # needs no parser
            write(version_line())
            code = 0
        else:
            from cli.app import run

            code = run(args)
    except KeyboardInterrupt:
        sys.stderr.write("ctx: interrupted\n")
        code = 130
    except SystemExit as end:  # how Typer answers a shell that asks for completion
        code = int(end.code or 0)
    if leave:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # a reader that went away, a stream that was closed
                stream.flush()
        os._exit(code)
    call = sys.modules.get("cli.call")
    if call is not None:  # --version needs none
        call.close_held()
    return code


run_and_leave = partial(main, leave=True)
"""The console script."""

if __name__ == "__main__":
    run_and_leave()
