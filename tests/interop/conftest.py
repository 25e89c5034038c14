"""Apache Hudi and hudi-rs as fixtures.  Each version's JVM is started once, by the first test that asks for it."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from interop import hudi_rs
from interop.apache_hudi import ApacheHudi, OursOnSpark
from interop.spark_process import SparkProcess
from sampling import mark_first

WRITER = "0.15.0"  # the newest Apache Hudi that writes table version 6 by default
READERS = ("hudi-rs", WRITER, "1.0.2")

# Of each test of these modules that neither names nor samples its cases (tools/sampling.py), .ci/run does the first of
# so many; nox session interop_full does all.
ONE_OF = {
    "test_payloads": 24,
    "test_key_generators": 32,
    "test_schema_evolution": 32,
    "test_index": 36,
    "test_sizing": 8,
    "test_validators": 24,
    "test_following": 4,
    "test_upgraded": 6,
    "test_unseen_tables": 10,
    "test_two_writers": 24,
    "test_undo": 6,
    "test_conversions": 4,
    "test_cdc": 6,
    "test_bucket_index": 8,
    "test_deduplicated": 2,
    "test_metadata_table": 5,
    "test_indexing": 6,
    "test_written_by_us": 4,
    "test_same_as_apache": 16,
    "test_taking_turns": 2,
    "test_altered": 2,
    "test_bounds_of_types": 2,
    "test_record_index": 4,
    "test_random_records": 8,
    "test_consistent_hashing": 2,
    "test_hfile": 12,
    "test_log_blocks": 2,
    "test_unions": 2,
    "test_log_files": 2,
    "test_bucket_resizes": 2,
    "test_compaction": 2,
    "test_path_values": 2,
    "test_services": 4,
    "test_overwritten_tables": 2,
    "test_commit_statistics": 3,
    "test_archived_replacements": 2,
    "test_harness": 3,
    "test_int96_times": 2,
}
# Files of minutes go first, so that no worker ends with one while the other has nothing to do.
LONGEST = (
    "test_unseen_tables", "test_two_writers", "test_following", "test_killed_writers", "test_spark",
    "test_taking_turns", "test_payloads",
    "test_same_as_apache", "test_undo", "test_pairwise", "test_written_by_us", "test_commit_statistics",
    "test_services", "test_conversions", "test_schema_evolution", "test_cdc",
)  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    for item in here:
        item.add_marker(pytest.mark.interop)
    mark_first(here, ONE_OF)
    yield  # pytest chooses by the markers and puts tests of one reader together
    rank = {name: n for n, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


class Pool:
    """Starts the implementation that is asked for, and keeps it for the tests that follow."""

    def __init__(self) -> None:
        self._running: dict[str, SparkProcess] = {}

    def get(self, version: str) -> ApacheHudi:
        """Apache Hudi in a version."""
        running = self._get(version, lambda: ApacheHudi(version))
        assert isinstance(running, ApacheHudi)
        return running

    def ours(self) -> SparkProcess:
        """This project on Spark."""
        return self._get("ours", OursOnSpark)

    def _get(self, name: str, start: Callable[[], SparkProcess]) -> SparkProcess:
        # One that a test's fault ended takes no other tests with it.
        if name in self._running and not self._running[name].running:
            self._running.pop(name).close()
        if name not in self._running:
            self._running[name] = start()
        return self._running[name]

    def close(self) -> None:
        while self._running:
            self._running.popitem()[1].close()


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.close()


@pytest.fixture
def apache(pool: Pool) -> ApacheHudi:
    """Apache Hudi 0.15.0, which reads and writes."""
    return pool.get(WRITER)


@dataclass(frozen=True)
class Reader:
    """Another engine that reads our tables.

    `keeps_order` is false where it gives partition columns in another place than Apache Hudi 0.15 does.
    """

    name: str
    read: Callable[..., pa.Table]
    keeps_order: bool


# Session scope makes pytest run all tests of one reader in a row: each JVM starts once.
@pytest.fixture(scope="session", params=READERS)
def reader(request: pytest.FixtureRequest, pool: Pool) -> Reader:
    """Each of the engines that read our tables, in turn."""
    name = request.param
    if name == "hudi-rs":
        return Reader(name, hudi_rs.read, False)

    def read(path: Path, *, as_of: str | None = None) -> pa.Table:
        options = {} if as_of is None else {"as.of.instant": as_of}
        return pool.get(name).read(path, **options)

    return Reader(name, read, name == WRITER)
