"""Options of cleaning, archival, resizes of bucket indexes and commit callbacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlparse

from hudi_format.errors import ConflictingOptionError, InvalidOptionError, UnsupportedError
from hudi_timeline.options import file_options as file
from hudi_timeline.options import service_options as service
from hudi_timeline.options.compaction_config import CompactionConfig, compaction_config
from hudi_timeline.options.config_key import given_value, given_values, value_of
from hudi_timeline.options.registry import ParsedOptions, canonical, shown

KEEP_COMMITS, KEEP_VERSIONS, KEEP_HOURS = (
    "KEEP_LATEST_COMMITS",
    "KEEP_LATEST_FILE_VERSIONS",
    "KEEP_LATEST_BY_HOURS",
)


@dataclass(frozen=True)
class ServiceConfig:
    """Retention options of cleaning and archival; the defaults are Apache Hudi's.

    Each field is the value of its option; what it means stands there.

    Attributes:
        compaction: the options of compactions.
    """

    enabled: bool = value_of(service.SERVICES_ENABLED)
    clean_automatic: bool = value_of(service.CLEAN_AUTOMATIC)
    clean_max_commits: int = value_of(service.CLEAN_MAX_COMMITS)
    clean_allow_multiple: bool = value_of(service.CLEAN_ALLOW_MULTIPLE)
    clean_policy: str = value_of(service.CLEAN_POLICY)
    clean_commits_retained: int = value_of(service.CLEAN_COMMITS_RETAINED)
    clean_hours_retained: int = value_of(service.CLEAN_HOURS_RETAINED)
    clean_versions_retained: int = value_of(service.CLEAN_VERSIONS_RETAINED)
    clean_incremental: bool = value_of(service.CLEAN_INCREMENTAL)
    archive_automatic: bool = value_of(service.ARCHIVE_AUTOMATIC)
    archive_min_commits: int = value_of(service.ARCHIVE_MIN_COMMITS)
    archive_max_commits: int = value_of(service.ARCHIVE_MAX_COMMITS)
    archive_batch: int = value_of(service.ARCHIVE_BATCH)
    archive_beyond_savepoint: bool = value_of(service.ARCHIVE_BEYOND_SAVEPOINT)
    compaction_delta_commits: int = value_of(service.COMPACTION_DELTA_COMMITS)
    metadata_delta_commits: int = value_of(service.METADATA_DELTA_COMMITS)
    compaction: CompactionConfig = field(default_factory=CompactionConfig)


def service_config(given: ParsedOptions) -> ServiceConfig:
    """Service options of a call.

    Raises:
        InvalidOptionError: archival would leave no commit, or as many as make it begin.
        UnsupportedError, ConflictingOptionError: as `compaction_config`.
    """
    values = given_values(ServiceConfig, given.parsed)
    config = ServiceConfig(**values, compaction=compaction_config(given))
    if config.archive_max_commits <= config.archive_min_commits:
        raise InvalidOptionError(
            f"{service.ARCHIVE_MAX_COMMITS}={config.archive_max_commits} is not above "
            f"{service.ARCHIVE_MIN_COMMITS}={config.archive_min_commits}",
            remedy=f"raise {service.ARCHIVE_MAX_COMMITS}, or lower {service.ARCHIVE_MIN_COMMITS}.",
            option=service.ARCHIVE_MAX_COMMITS,
        )
    return config


def parse_service_options(options: Mapping[str, str]) -> ServiceConfig:
    """Options of a service called on its own.

    Raises:
        UnknownOptionError, InvalidOptionError: as for writes.
    """
    return service_config(canonical(options))


# How a resize of a bucket index goes.


@dataclass(frozen=True)
class ResizeConfig:
    """Options of a resize; each field but the last is the value of its option.

    Attributes:
        files: how slices are merged, and the files that are written.
    """

    most: int | None = given_value(service.BUCKETS_MOST)
    least: int | None = given_value(service.BUCKETS_LEAST)
    split: float = value_of(service.BUCKETS_SPLIT)
    merge: float = value_of(service.BUCKETS_MERGE)
    max_file_bytes: int = value_of(file.PARQUET_MAX_FILE_BYTES)
    files: CompactionConfig = field(default_factory=CompactionConfig)

    @property
    def split_bytes(self) -> float:
        """Size above which a bucket is split."""
        return self.split * self.max_file_bytes

    @property
    def merge_bytes(self) -> float:
        """Size below which buckets together are merged."""
        return self.merge * self.max_file_bytes


def parse_resize_options(options: Mapping[str, str]) -> ResizeConfig:
    """Options of a resize.

    Raises:
        UnknownOptionError, InvalidOptionError: as for writes.
        ConflictingOptionError: a bucket that is split would be merged by the next resize; fewer buckets at most than
            at least.
    """
    given = canonical(options)
    values = given_values(ResizeConfig, given.parsed)
    config = ResizeConfig(**values, files=compaction_config(given))
    if config.merge > config.split:
        raise ConflictingOptionError(
            f"{service.BUCKETS_MERGE}={config.merge:g} is above {service.BUCKETS_SPLIT}={config.split:g}: the buckets "
            "of a split would be merged again",
            remedy=f"lower {service.BUCKETS_MERGE}.", option=service.BUCKETS_MERGE,
        )  # fmt: skip
    if config.most is not None and config.least is not None and config.most < config.least:
        raise ConflictingOptionError(
            f"{service.BUCKETS_MOST}={config.most} is below {service.BUCKETS_LEAST}={config.least}",
            remedy="let the first be the greater one.", option=service.BUCKETS_MOST,
        )  # fmt: skip
    return config


# Who is told of a completed commit: options of `hoodie.write.commit.callback.*`.

HTTP = "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback"
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


@dataclass(frozen=True, slots=True)
class CallbackConfig:
    """One callback: a Python function, or an address.

    Attributes:
        function: `module:function`; "" where the commit is posted.
    """

    function: str = ""
    url: str = ""
    timeout_s: int = service.CALLBACK_TIMEOUT.value
    api_key: str = field(default=service.CALLBACK_KEY.value, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def callback_config(given: ParsedOptions) -> CallbackConfig | None:
    """The callback in the options; None where it is switched off.

    Raises:
        UnsupportedError: a class that only a JVM can load.
        InvalidOptionError: no address to post to, or no such address or header.
    """
    if given.parsed.get(service.CALLBACK_ON) is not True:
        return None
    named = str(given.parsed.get(service.CALLBACK_CLASS) or HTTP)
    if ":" in named:
        return CallbackConfig(function=named)
    if named != HTTP:
        raise UnsupportedError(
            f"{service.CALLBACK_CLASS}={named} is a commit callback that needs a JVM",
            remedy=f"use {HTTP.rpartition('.')[2]}, or a Python function as module:function.",
            option=service.CALLBACK_CLASS,
            value=named,
        )
    url = str(given.parsed.get(service.CALLBACK_URL) or "").strip()
    address = urlparse(url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise InvalidOptionError(
            f"{service.CALLBACK_ON}=true posts commits to {service.CALLBACK_URL}, which is {url!r}",
            remedy="give an address that begins with http:// or https://.",
            option=service.CALLBACK_URL,
        )
    timeout = given.parsed.get(service.CALLBACK_TIMEOUT)
    key = given.parsed.get(service.CALLBACK_KEY)
    return CallbackConfig(
        url=url,
        timeout_s=timeout if isinstance(timeout, int) else service.CALLBACK_TIMEOUT.value,
        api_key=CallbackConfig().api_key if key is None else str(key).strip(),
        headers=tuple(
            _header(h) for h in str(given.parsed.get(service.CALLBACK_HEADERS) or "").split(";") if h.strip()
        ),
    )


def _header(text: str) -> tuple[str, str]:
    name, colon, value = (part.strip() for part in text.partition(":"))
    option = service.CALLBACK_HEADERS
    if not colon or not value or not _NAME.match(name) or not value.isprintable():
        raise InvalidOptionError(
            f"{option} has {shown(option, name)!r}, which is not a header with a value",
            remedy="write name:value, with ; between headers.",
            option=option,
        )
    return name, value
