"""A plain-Python process of `soak.rivals`: writes, serves or reads one table, told what to do by lines of JSON.

A request is one line on standard input, `{"do": ..., ...}`; its answer one on standard output,
`{"end": "done" | "lost" | "failed", ...}`.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hudi_format import ConcurrentWriterError, HudiError, LockError
from hudi_timeline import HudiTable
from soak.serial_history import Batch, rows_of, wrong_in_snapshot

SERVICES = ("clean", "archive", "compact", "log_compact", "resize_buckets")


def write(path: str, options: Mapping[str, str], operation: str, name: str, rows: list[list[str]]) -> str:
    """Write a batch; gives its instant."""
    batch = Batch(name, operation, tuple((key, p, v) for key, p, v in rows))
    table = HudiTable.open(path, options=dict(options))
    return str(getattr(table, operation)(batch.to_arrow()).instant)


def serve(path: str, options: Mapping[str, str], service: str) -> str:
    """Run a table service once."""
    getattr(HudiTable.open(path, options=dict(options)), service)()
    return ""


def look(path: str, options: Mapping[str, str]) -> str:
    """Read the table; gives what no state of it has."""
    table = HudiTable.open(path, options=dict(options))
    return "; ".join(wrong_in_snapshot(rows_of(table.read(["id", "p", "v"]).to_arrow())))


COMMANDS: dict[str, Callable[..., str]] = {"write": write, "serve": serve, "look": look}


def answer(request: dict[str, Any]) -> dict[str, str]:
    try:
        return {"end": "done", "said": COMMANDS[request.pop("do")](**request)}
    except (ConcurrentWriterError, LockError) as e:
        return {"end": "lost", "said": f"{type(e).__name__}: {e}"}
    except (HudiError, OSError, ValueError, LookupError, TypeError, AssertionError):
        return {"end": "failed", "said": traceback.format_exc()}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
