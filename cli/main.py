"""The console script. Nothing is imported before the handler stands that turns every failure into a line."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. Never raises, unless `--debug` asks for the traceback."""
    args = list(sys.argv[1:] if args is None else args)
    try:
        from cli.output import prepare_streams, write

        prepare_streams()
        if args == ["--version"]:  # needs no parser
            from cli.version import version_line

            write(version_line())
            return 0
        from cli.app import run

        return run(args)
    except KeyboardInterrupt:
        sys.stderr.write("ctx: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
