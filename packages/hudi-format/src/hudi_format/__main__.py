"""Command line `python -m hudi_format inspect FILE`: shows one log file, HFile or base file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from hudi_format.errors import HudiError
from hudi_format.inspect.files import inspect_file
from hudi_format.inspect.report import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 shown without problems, 1 shown with damage in the file, 2 not shown."""
    parser = argparse.ArgumentParser(prog="python -m hudi_format", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    inspect = commands.add_parser("inspect", help="blocks, row groups or entries of one file, and its schema")
    inspect.add_argument("file", help="a path, or an address that fsspec knows")
    inspect.add_argument("--json", action="store_true", help="as one JSON object, with nothing shortened")
    chosen = parser.parse_args(arguments)
    try:
        report = inspect_file(chosen.file)
    except HudiError as e:
        print(printable(str(e)), file=sys.stderr)
        return 2
    try:
        print(report.to_json() if chosen.json else report.to_text(), flush=True)
    except BrokenPipeError:  # whoever reads it has seen enough; Python would complain once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
