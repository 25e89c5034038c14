"""Test support for code on Hudi tables: faults, interleavings, tables in any state."""

from hudi_timeline.testing.acts import ACTS
from hudi_timeline.testing.faulty_storage import (
    CHANGES,
    CRASH,
    DELAY,
    DOUBLE,
    FAIL,
    LOOKS,
    LOSE,
    STALE,
    STALL,
    TEAR,
    WRITES,
    Call,
    Crash,
    Fault,
    Faults,
    FaultyStorage,
    Kind,
)
from hudi_timeline.testing.histories import Follower, Violation, by_key, check, is_serializable
from hudi_timeline.testing.interleavings import Act, Done, Outcome, SteppedLock, Stuck, shrunk, simulate
from hudi_timeline.testing.memory_storage import MemoryStorage
from hudi_timeline.testing.preemptions import Preemption, preemptions
from hudi_timeline.testing.states import TableState, make_state, state_names
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.testing.workload import Case, drawn

__all__ = [
    "ACTS",
    "CHANGES",
    "CRASH",
    "DELAY",
    "DOUBLE",
    "FAIL",
    "LOOKS",
    "LOSE",
    "STALE",
    "STALL",
    "TEAR",
    "WRITES",
    "Act",
    "Call",
    "Case",
    "Crash",
    "Done",
    "Fault",
    "Faults",
    "FaultyStorage",
    "Follower",
    "Kind",
    "MemoryStorage",
    "Outcome",
    "Preemption",
    "SteppedLock",
    "Stuck",
    "TableBuilder",
    "TableState",
    "Violation",
    "by_key",
    "check",
    "drawn",
    "is_serializable",
    "make_state",
    "preemptions",
    "shrunk",
    "simulate",
    "state_names",
]
