"""Commit callbacks: a Python function or an HTTP server notified of completed writes.

It comes last, when the write is visible and the services after it have run.  A callback that fails makes a warning of
the write, and is not tried again.

    def moved(commit):                               # hoodie.write.commit.callback.on=true
        save_checkpoint(commit.instant, commit.completion)          # ... .class=my_jobs:moved

What is told has both checkpoints of readers that follow the table: its instant, for those that read in the order of
instants, and the time of its completion, for those that read in that order (`hudi.read.incremental.order`).

Source: spec "Writer", section 18; RFC-22, "Dependency/Follow up".
"""

from __future__ import annotations

import json
import logging
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException
from typing import Any

from hudi_format._checks import imported
from hudi_format.model import WriteStat
from hudi_timeline.options.service_config import CallbackConfig
from hudi_timeline.options.service_options import CALLBACK_CLASS
from hudi_timeline.timeline.commit_metadata import stat_to_json

log = logging.getLogger("hudi")


@dataclass(frozen=True, slots=True)
class CommitNotice:
    """Notice of one write.

    Attributes:
        instant: the commit's instant time, the checkpoint of readers in the order of instants.
        completion: when it was completed, as an instant time of the table's zone, the checkpoint of readers in the
            order of completion; "" where the storage did not say.
        table, uri: name and base path.
        action: `commit` or `replacecommit`.
        extra: the commit's extraMetadata, its schema among it.
    """

    instant: str
    completion: str
    table: str
    uri: str
    action: str
    write_stats: tuple[WriteStat, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Apache Hudi's message, with the completion time and the values its Options lack."""
        return json.dumps(
            {
                "commitTime": self.instant,
                "tableName": self.table,
                "basePath": self.uri,
                "hoodieWriteStat": [stat_to_json(s) for s in self.write_stats],
                "commitActionType": _optional(self.action),
                "extraMetadata": _optional(dict(self.extra)),
                "completionTime": self.completion or None,
            },
            ensure_ascii=False,
        ).encode()


def _optional(value: object) -> dict[str, object]:
    """An `Option` as Apache Hudi 0.15 posts it (presence only), and its value."""
    return {"empty": False, "present": True, "val": value}


Callback = Callable[[CommitNotice], Any]


def callback_of(config: CallbackConfig | None) -> Callback | None:
    """The configured callback.

    Raises:
        InvalidOptionError: a function that cannot be imported.
    """
    if config is None:
        return None
    if config.function:
        return imported(config.function, CALLBACK_CLASS)
    return partial(_post, config)


def _post(config: CallbackConfig, message: CommitNotice) -> None:
    headers = {
        "Content-Type": "application/json; charset=UTF-8",
        "HUDI-CALLBACK-KEY": config.api_key,
        **dict(config.headers),
    }
    request = urllib.request.Request(config.url, message.to_json(), headers, method="POST")
    with urllib.request.urlopen(request, timeout=config.timeout_s):
        return  # what answers with an error status raises


def tell(callback: Callback | None, message: CommitNotice) -> tuple[str, ...]:
    """Call the callback; returns a warning where it failed."""
    if callback is None:
        return ()
    try:
        callback(message)
    except (OSError, HTTPException) as e:
        why = str(e)
    except Exception as e:  # the user's own code; the write is completed whatever it does
        log.warning("%s: commit callback failed", message.uri, exc_info=True)
        why = f"{type(e).__name__}: {e}"
    else:
        return ()
    return (f"the write is completed, but its callback failed: {why}",)
