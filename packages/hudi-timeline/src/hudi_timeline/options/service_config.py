"""Options of the services that keep a table healthy: cleaning and archival."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlparse

from hudi_format.errors import InvalidOptionError, UnsupportedError
from hudi_timeline.options.registry import ParsedOptions, canonical, shown

KEEP_COMMITS, KEEP_VERSIONS, KEEP_HOURS = (
    "KEEP_LATEST_COMMITS",
    "KEEP_LATEST_FILE_VERSIONS",
    "KEEP_LATEST_BY_HOURS",
)
MIN_COMMITS, MAX_COMMITS = "hoodie.keep.min.commits", "hoodie.keep.max.commits"

# Attribute of ServiceConfig -> its option.
SERVICE_FIELDS = {
    "enabled": "hoodie.table.services.enabled",
    "clean_automatic": "hoodie.clean.automatic",
    "clean_max_commits": "hoodie.clean.max.commits",
    "clean_allow_multiple": "hoodie.clean.allow.multiple",
    "clean_policy": "hoodie.cleaner.policy",
    "clean_commits_retained": "hoodie.cleaner.commits.retained",
    "clean_hours_retained": "hoodie.cleaner.hours.retained",
    "clean_versions_retained": "hoodie.cleaner.fileversions.retained",
    "clean_incremental": "hoodie.cleaner.incremental.mode",
    "archive_automatic": "hoodie.archive.automatic",
    "archive_min_commits": MIN_COMMITS,
    "archive_max_commits": MAX_COMMITS,
    "archive_batch": "hoodie.commits.archival.batch",
    "archive_beyond_savepoint": "hoodie.archive.beyond.savepoint",
    "compaction_delta_commits": "hoodie.compact.inline.max.delta.commits",
}

SERVICE_DOCS = {
    "hoodie.table.services.enabled": "false: a write neither cleans nor archives afterwards.",
    "hoodie.clean.automatic": "Commits are followed by a cleaning, where one is due.",
    "hoodie.clean.max.commits": "A cleaning is due after so many commits since the last one.",
    "hoodie.clean.allow.multiple": "A cleaning may be planned while another one is not finished.",
    "hoodie.cleaner.policy": "What the cleaner keeps: the last commits, the last versions of each file, or hours.",
    "hoodie.cleaner.commits.retained": "Commits that stay readable by time travel (KEEP_LATEST_COMMITS).",
    "hoodie.cleaner.hours.retained": "Hours that stay readable by time travel (KEEP_LATEST_BY_HOURS).",
    "hoodie.cleaner.fileversions.retained": "Versions of each file that stay (KEEP_LATEST_FILE_VERSIONS).",
    "hoodie.cleaner.incremental.mode": "The cleaner looks only at partitions that changed since the last cleaning.",
    "hoodie.archive.automatic": "Commits are followed by archival, where it is due.",
    MIN_COMMITS: "Instants that archival leaves on the active timeline.",
    MAX_COMMITS: "Archival begins when the active timeline has more commits than this.",
    "hoodie.commits.archival.batch": "Entries in one block of an archive file.",
    "hoodie.archive.beyond.savepoint": "Commits after the first savepoint are archived too, savepointed ones not.",
    "hoodie.compact.inline.max.delta.commits": "Delta commits that archival leaves for the next compaction to count.",
}


@dataclass(frozen=True)
class ServiceConfig:
    """What cleaning and archival were asked to keep; the defaults are Apache Hudi's.

    Attributes:
        enabled: False: no service runs after a commit.
        clean_max_commits: commits since the last cleaning that make one due.
        archive_min_commits, archive_max_commits: commits that stay; how many there must be for archival to begin.
        archive_batch: entries in one block.
    """

    enabled: bool = True
    clean_automatic: bool = True
    clean_max_commits: int = 1
    clean_allow_multiple: bool = False
    clean_policy: str = KEEP_COMMITS
    clean_commits_retained: int = 10
    clean_hours_retained: int = 24
    clean_versions_retained: int = 3
    clean_incremental: bool = True
    archive_automatic: bool = True
    archive_min_commits: int = 20
    archive_max_commits: int = 30
    archive_batch: int = 10
    archive_beyond_savepoint: bool = False
    compaction_delta_commits: int = 5


def service_config(given: ParsedOptions) -> ServiceConfig:
    """The options of services among those of a call.

    Raises:
        InvalidOptionError: archival would leave no commit, or as many as make it begin.
    """
    values: dict[str, Any] = {
        name: given.parsed[key] for name, key in SERVICE_FIELDS.items() if key in given.parsed
    }
    config = ServiceConfig(**values)
    if config.archive_max_commits <= config.archive_min_commits:
        raise InvalidOptionError(
            f"{MAX_COMMITS}={config.archive_max_commits} is not above {MIN_COMMITS}={config.archive_min_commits}",
            remedy=f"raise {MAX_COMMITS}, or lower {MIN_COMMITS}.",
            option=MAX_COMMITS,
        )
    return config


def parse_service_options(options: Mapping[str, str]) -> ServiceConfig:
    """The options of a service that is called by itself.

    Raises:
        UnknownOptionError, InvalidOptionError: as for writes.
    """
    return service_config(canonical(options))


# Who is told of a completed commit: options of `hoodie.write.commit.callback.*`.

PREFIX = "hoodie.write.commit.callback."
ON, CLASS, URL = PREFIX + "on", PREFIX + "class", PREFIX + "http.url"
TIMEOUT, KEY, HEADERS = (
    PREFIX + "http.timeout.seconds",
    PREFIX + "http.api.key",
    PREFIX + "http.custom.headers",
)
HTTP = "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback"

DOCS = {
    ON: "After each commit somebody is told of it: by HTTP, or by a call of a Python function.",
    CLASS: "Apache Hudi's HoodieWriteCommitHttpCallback, or a Python function as module:function.",
    URL: "Address that each commit is posted to, as JSON.",
    TIMEOUT: "How long an answer is waited for.",
    KEY: "Value of the header HUDI-CALLBACK-KEY.",
    HEADERS: "Further headers, `name:value` with ; between them.",
}
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


@dataclass(frozen=True, slots=True)
class CallbackConfig:
    """One callback: a Python function, or an address.

    Attributes:
        function: `module:function`; "" where the commit is posted.
    """

    function: str = ""
    url: str = ""
    timeout_s: int = 30
    api_key: str = field(default="hudi_write_commit_http_callback", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def callback_config(given: ParsedOptions) -> CallbackConfig | None:
    """The callback that options ask for, None where it is not switched on.

    Raises:
        UnsupportedError: a class that only a JVM can load.
        InvalidOptionError: no address to post to, or no such address or header.
    """
    if given.parsed.get(ON) is not True:
        return None
    named = str(given.parsed.get(CLASS) or HTTP)
    if ":" in named:
        return CallbackConfig(function=named)
    if named != HTTP:
        raise UnsupportedError(
            f"{CLASS}={named} asks for a commit callback that only a JVM can load",
            remedy=f"use {HTTP.rpartition('.')[2]}, or a Python function as module:function.",
            option=CLASS,
            value=named,
        )
    url = str(given.parsed.get(URL) or "").strip()
    address = urlparse(url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise InvalidOptionError(
            f"{ON}=true posts commits to {URL}, which is {url!r}",
            remedy="give an address that begins with http:// or https://.",
            option=URL,
        )
    timeout = given.parsed.get(TIMEOUT)
    key = given.parsed.get(KEY)
    return CallbackConfig(
        url=url,
        timeout_s=timeout if isinstance(timeout, int) else 30,
        api_key=CallbackConfig().api_key if key is None else str(key).strip(),
        headers=tuple(_header(h) for h in str(given.parsed.get(HEADERS) or "").split(";") if h.strip()),
    )


def _header(text: str) -> tuple[str, str]:
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon or not value or not _NAME.match(name) or not value.isprintable():
        raise InvalidOptionError(
            f"{HEADERS} has {shown(HEADERS, name)!r}, which is no header with a value",
            remedy="write name:value, with ; between headers.",
            option=HEADERS,
        )
    return name, value
