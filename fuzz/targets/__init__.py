"""One target per parser of untrusted bytes; `TARGETS` by name."""

from __future__ import annotations

from targets import avro, base_file, hfile, index, log, merged_file, metadata, timeline
from targets.target import Target

TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        *avro.TARGETS,
        *log.TARGETS,
        *hfile.TARGETS,
        *base_file.TARGETS,
        *merged_file.TARGETS,
        *index.TARGETS,
        *timeline.TARGETS,
        *metadata.TARGETS,
    )
}
