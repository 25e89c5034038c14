"""Tables in named states that pipelines meet and rarely test, built in milliseconds.

state = make_state("hollow commit")
state.table             # a HudiTable; HudiTable.open(state.table.uri) gives it too
state.rows              # what a snapshot of it holds, or
state.error             # what reading it raises
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hudi_format.errors import CorruptFileError, HudiError, MissingFileError
from hudi_format.model import WriteStat
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.concurrency import markers
from hudi_timeline.table import HudiTable
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline.action_metadata import (
    CleanPlan,
    CompactionOperation,
    CompactionPlan,
    InstantName,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    render_action,
)
from hudi_timeline.timeline.instant import (
    CLEAN,
    COMMIT,
    COMPACTION,
    COMPLETED,
    INFLIGHT,
    REQUESTED,
    ROLLBACK,
)

FIRST = {"k1": 1, "k2": 2, "k3": 3}
"""The rows of the first commit in all states."""
Rows = dict[str, int]


@dataclass(frozen=True)
class TableState:
    """A table in some state.

    Attributes:
        about: the state in one sentence.
        built: the table, to go on with.
        rows: what a snapshot holds, value by key; None where reading raises.
        error: the class of what reading raises; None where it does not.
    """

    name: str
    about: str
    built: TableBuilder
    rows: Rows | None
    error: type[HudiError] | None = None

    @property
    def table(self) -> HudiTable:
        return self.built.table


@dataclass(frozen=True)
class _Maker:
    about: str
    table_type: str
    make: Callable[[TableBuilder], Rows | type[HudiError]]


_MAKERS: dict[str, _Maker] = {}


_Make = TypeVar("_Make", bound=Callable[[TableBuilder], Rows | type[HudiError]])


def _cow(name: str, about: str, *, table_type: str = "COPY_ON_WRITE") -> Callable[[_Make], _Make]:
    """Register a state of a copy-on-write table."""

    def add(make: _Make) -> _Make:
        _MAKERS[name] = _Maker(about, table_type, make)
        return make

    return add


def _mor(name: str, about: str) -> Callable[[_Make], _Make]:
    """Register a state of a merge-on-read table."""
    return _cow(name, about, table_type="MERGE_ON_READ")


def state_names() -> list[str]:
    """Names for `make_state`."""
    return list(_MAKERS)


def make_state(name: str, storage: Storage | None = None) -> TableState:
    """A table in the named state.

    Args:
        storage: an empty place; one in memory of its own if not given.

    Raises:
        KeyError: no such state; `state_names` lists them.
    """
    maker = _MAKERS[name]
    built = TableBuilder(storage, table_type=maker.table_type)
    found = maker.make(built)
    rows, error = (found, None) if isinstance(found, dict) else (None, found)
    return TableState(name, maker.about, built, rows, error)


def _first(made: TableBuilder) -> WriteStat:
    stat = made.base("first", FIRST)
    made.commit("first", stat)
    return stat


def _damage(made: TableBuilder, path: str, change: Callable[[bytes], bytes]) -> None:
    made.storage.touch(path, change(made.storage.read(path)))


# --- copy-on-write ----------------------------------------------------------------------------------------


@_cow("sound", "Two commits, the second of which rewrote the file of the first.")
def _sound(made: TableBuilder) -> Rows:
    _first(made)
    made.commit("second", made.base("second", {**FIRST, "k4": 4}, prev="first"))
    return {**FIRST, "k4": 4}


@_cow("no commit", "A table that was made and never written to.")
def _no_commit(made: TableBuilder) -> Rows:
    made.instants.clear()
    return {}


@_cow("requested commit", "A writer that died before it wrote a file.")
def _requested(made: TableBuilder) -> Rows:
    _first(made)
    made.pending("second", inflight=None)
    return FIRST


@_cow("inflight commit", "A writer that died with a whole file and its marker there, before its commit.")
def _inflight(made: TableBuilder) -> Rows:
    _first(made)
    instant = made.pending("second")
    stat = made.base("second", {**FIRST, "k4": 4}, prev="first")
    markers.create(made.storage, instant, "p0", stat.path.rpartition("/")[2], "MERGE")
    return FIRST


@_cow("running commit", "A writer that is at work on another machine.")
def _running(made: TableBuilder) -> Rows:
    _first(made)
    made.pending("second", alive=True)
    return FIRST


@_cow(
    "hollow commit",
    "A commit that is still open while a later one is completed: reading ranges stops before it.",
)
def _hollow(made: TableBuilder) -> Rows:
    _first(made)
    made.pending("second", alive=True)
    made.commit("third", made.base("third", {"k5": 5}, group=2))
    return {**FIRST, "k5": 5}


@_cow(
    "replaced groups", "A partition that was overwritten: the old group's file is there, and does not count."
)
def _replaced(made: TableBuilder) -> Rows:
    _first(made)
    stat = made.base("second", {"k9": 9}, group=2)
    made.commit("second", stat, replaced={"p0": [made.group(1)]}, operation="INSERT_OVERWRITE")
    return {"k9": 9}


@_cow("archived history", "Eight commits, of which all but the newest few are archived.")
def _archived(made: TableBuilder) -> Rows:
    for n in range(8):
        made.commit(f"c{n}", made.base(f"c{n}", {**FIRST, "k4": n}, prev=f"c{n - 1}" if n else "null"))
    keep = {
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    made.table.archive(options=keep)
    return {**FIRST, "k4": 7}


@_cow("savepoint", "A commit that is savepointed, and one after it.")
def _savepoint(made: TableBuilder) -> Rows:
    _first(made)
    made.table.savepoint()
    made.commit("second", made.base("second", {"k1": 9, "k2": 9}, prev="first"))
    return {"k1": 9, "k2": 9}


@_cow("pending clean", "A cleaning that was planned and not executed.")
def _pending_clean(made: TableBuilder) -> Rows:
    return _clean(made, inflight=False)


@_cow("clean without its plan", "A cleaning of which only the inflight file is left: it holds the plan too.")
def _clean_inflight(made: TableBuilder) -> Rows:
    rows = _clean(made, inflight=True)
    made.storage.delete(made.path_of(made.at("clean"), CLEAN, REQUESTED))
    return rows


def _clean(made: TableBuilder, *, inflight: bool) -> Rows:
    old = _first(made)
    made.commit("second", made.base("second", {**FIRST, "k4": 4}, prev="first"))
    plan = CleanPlan("KEEP_LATEST_COMMITS", files={"p0": (old.path.rpartition("/")[2],)})
    content = plan.to_bytes(made.storage.uri)
    made.pending("clean", CLEAN, request=content, inflight=content if inflight else None)
    return {**FIRST, "k4": 4}


@_cow("pending rollback", "A rollback that died after it had deleted the files of the write that it undoes.")
def _pending_rollback(made: TableBuilder) -> Rows:
    _first(made)
    instant = made.pending("second")
    stat = made.base("second", {"k1": 9}, prev="first")
    request = RollbackRequest("p0", files=(f"{made.storage.uri}/{stat.path}",))
    plan = RollbackPlan(InstantName(instant, COMMIT), (request,))
    made.pending("rollback", ROLLBACK, request=render_action(plan))
    made.storage.delete(stat.path)
    return FIRST


@_cow(
    "half updated properties", "A process that died between the two writes of an update of hoodie.properties."
)
def _properties(made: TableBuilder) -> Rows:
    _first(made)
    made.storage.publish(table_config.BACKUP_FILE, made.storage.read(table_config.PROPERTIES_FILE))
    made.storage.delete(table_config.PROPERTIES_FILE)
    return FIRST


@_cow("missing file", "A file of the newest commit is gone.")
def _missing(made: TableBuilder) -> type[HudiError]:
    stat = _first(made)
    made.storage.delete(stat.path)
    return MissingFileError


@_cow("empty commit file", "A completed instant's file without a byte, as a full disk leaves it.")
def _empty_commit(made: TableBuilder) -> type[HudiError]:
    _first(made)
    made.pending("second")
    made.storage.touch(made.path_of(made.at("second"), COMMIT, COMPLETED))
    return CorruptFileError


@_cow("cut base file", "The second half of a base file is missing.")
def _cut_base(made: TableBuilder) -> type[HudiError]:
    stat = _first(made)
    _damage(made, stat.path, lambda data: data[: len(data) // 2])
    return CorruptFileError


# --- merge-on-read ----------------------------------------------------------------------------------------


@_mor("log files", "Updates and deletes in log files.")
def _logs(made: TableBuilder) -> Rows:
    _first(made)
    made.commit("second", made.log("second", {"k1": 10, "k4": 4}, deletes=["k2"]))
    return {"k1": 10, "k3": 3, "k4": 4}


@_mor("inflight log file", "A log file of a writer that died before its commit.")
def _inflight_log(made: TableBuilder) -> Rows:
    _first(made)
    made.pending("second")
    made.log("second", {"k1": 10})
    return FIRST


@_mor("torn log block", "A writer that died in the middle of a log block, and one after it.")
def _torn(made: TableBuilder) -> Rows:
    _first(made)
    made.pending("second")
    stat = made.log("second", {"k1": 10})
    _damage(made, stat.path, lambda data: data[: len(data) // 2])
    made.commit("third", made.log("third", {"k2": 20}))
    return {**FIRST, "k2": 20}


@_mor("corrupt block", "A log block of a completed commit is cut off: rows that were committed are lost.")
def _corrupt(made: TableBuilder) -> type[HudiError]:
    _first(made)
    stat = made.log("second", {"k1": 10})
    made.commit("second", stat)
    _damage(made, stat.path, lambda data: data[: len(data) // 2])
    return CorruptFileError


@_mor("Kryo deletes", "Deletes in a list as releases of Apache Hudi up to 0.10 wrote them.")
def _kryo(made: TableBuilder) -> Rows:
    _first(made)
    made.commit("second", made.log("second", kryo=["k1", "k3"]))
    return {"k2": 2}


@_mor("rolled back log blocks", "A log block that a command block in a later file takes back.")
def _rolled_back(made: TableBuilder) -> Rows:
    _first(made)
    made.log("second", {"k1": 10})
    made.at("rollback")
    made.log("rollback", rolls_back="second")
    target = InstantName(made.at("second"), "deltacommit")
    done = RollbackMetadata(made.at("rollback"), commits=(target.time,), instants=(target,))
    made.pending("rollback", ROLLBACK, request=b"")
    made.storage.create(made.path_of(made.at("rollback"), ROLLBACK, COMPLETED), render_action(done))
    made.commit("third", made.log("third", {"k2": 20}))
    return {**FIRST, "k2": 20}


@_mor(
    "pending compaction",
    "A compaction that is planned, and a commit whose log file belongs to the slice it begins.",
)
def _compaction(made: TableBuilder) -> Rows:
    base = _first(made)
    log = made.log("second", {"k1": 10})
    made.commit("second", log)
    base_file, log_file = (s.path.rpartition("/")[2] for s in (base, log))
    part = CompactionOperation("p0", made.group(1), made.at("first"), base_file, (log_file,))
    content = CompactionPlan((part,), version=2).to_bytes()
    made.pending("compaction", COMPACTION, request=content, inflight=None)
    made.commit("third", made.log("third", {"k2": 20}, on="compaction"))
    return {"k1": 10, "k2": 20, "k3": 3}


@_mor("dead compaction", "A compaction that died with its new base file there.")
def _dead_compaction(made: TableBuilder) -> Rows:
    rows = _compaction(made)
    made.storage.create(made.path_of(made.at("compaction"), COMPACTION, INFLIGHT), b"")
    made.base("compaction", {"k1": 10, "k2": 2, "k3": 3}, prev="first")
    return rows
