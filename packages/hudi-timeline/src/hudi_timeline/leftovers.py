"""Temporary files of writers that were killed between writing a file and giving it its name.

They never count as anything, and are taken away by the next writer, so that they do not add up.
"""

from __future__ import annotations

import re

from hudi_format.names import META_DIR
from hudi_format.storage import Storage
from hudi_timeline import heartbeat

# `LocalStorage` names them so; other stores write in one step.
_TEMPORARY = re.compile(r"^\.(?P<name>.+)\.[0-9a-f]{32}\.tmp$")
_INSTANT = re.compile(r"^\d{14,17}(?!\d)")


def remove_temporaries(storage: Storage) -> None:
    """Remove the temporary files of the timeline and of heartbeats whose writers are gone.

    Called under the table's lock, after dead writes were rolled back: what begins, commits or is rolled back does
    so under that lock, and what runs meanwhile has a heartbeat.  Files of no instant (hoodie.properties) may be
    those of a caller that holds no lock, and stay.
    """
    if not storage.is_local:
        return
    at_work = set(heartbeat.list_instants(storage))
    for folder in (META_DIR, heartbeat.FOLDER):
        for entry in storage.list(folder):
            found = None if entry.is_dir else _TEMPORARY.match(entry.name)
            instant = _INSTANT.match(found["name"]) if found else None
            if instant is not None and instant[0] not in at_work:
                storage.delete(f"{folder}/{entry.name}")
