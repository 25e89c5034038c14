"""One target per parser of untrusted bytes; `TARGETS` by name."""

from __future__ import annotations

from targets import avro, base_file, hfile, index, log, timeline
from targets.target import Target

TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        *avro.TARGETS,
        *log.TARGETS,
        *hfile.TARGETS,
        *base_file.TARGETS,
        *index.TARGETS,
        *timeline.TARGETS,
    )
}
