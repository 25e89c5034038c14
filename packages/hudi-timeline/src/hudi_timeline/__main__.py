"""Entry point of the command `hudi`, which is `python -m hudi_timeline` too."""

from __future__ import annotations

import sys


def main() -> None:
    """Run of the command; an interrupt while its libraries are imported is one line too."""
    try:
        from hudi_timeline.cli.main import main as run

        run()
    except KeyboardInterrupt:
        print("interrupted.", file=sys.stderr)
        sys.exit(130)  # `INTERRUPTED` of cli.main, which may not be imported yet


if __name__ == "__main__":
    main()
