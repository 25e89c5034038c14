"""Which file groups of two operations are in conflict, by strategy, and who may name one."""

import pytest
from rival_writers import DURING, OCC, Between, make, rows, state

from hudi_format.errors import InvalidOptionError, UnsupportedError
from hudi_timeline import HudiTable
from hudi_timeline.options import parse_write_options
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.transaction.conflict_strategies import (
    CLUSTERING,
    COMPACTION,
    BucketIndexConcurrentFileWrites,
    ConcurrentOperation,
    IngestionPrimaryWriter,
    SimpleConcurrentFileWrites,
    strategy_of,
)

KEY = "hoodie.write.lock.conflict.resolution.strategy"
PACKAGE = "org.apache.hudi.client.transaction."
OURS = ConcurrentOperation("2", "commit", file_groups=frozenset({("p", "00000001-aa"), ("p", "00000002-bb")}))
SAME = ("p", "00000001-aa")
SAME_BUCKET = ("p", "00000002-cc")
CASES = [
    (SimpleConcurrentFileWrites, "commit", True, [SAME, SAME_BUCKET], [SAME]),
    (SimpleConcurrentFileWrites, CLUSTERING, False, [SAME], [SAME]),
    (SimpleConcurrentFileWrites, "commit", True, [("q", SAME[1])], []),
    (BucketIndexConcurrentFileWrites, "commit", True, [SAME, SAME_BUCKET], [SAME, ("p", "00000002-bb")]),
    (BucketIndexConcurrentFileWrites, "commit", True, [("q", SAME[1])], []),
    (IngestionPrimaryWriter, "commit", True, [SAME], [SAME]),
    (IngestionPrimaryWriter, CLUSTERING, False, [SAME], []),
    (IngestionPrimaryWriter, "replacecommit", True, [SAME], [SAME]),
    (IngestionPrimaryWriter, COMPACTION, False, [SAME], [SAME]),
]


@pytest.mark.req("CC-15")
@pytest.mark.parametrize(("kind", "action", "completed", "groups", "shared"), CASES)
def test_what_counts_as_the_same_file_group(kind, action, completed, groups, shared):
    theirs = ConcurrentOperation("1", action, completed=completed, file_groups=frozenset(groups))
    assert sorted(kind().shared(OURS, theirs)) == shared


@pytest.mark.req("CC-15")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SimpleConcurrentFileWritesConflictResolutionStrategy", SimpleConcurrentFileWrites),
        ("BucketIndexConcurrentFileWritesConflictResolutionStrategy", BucketIndexConcurrentFileWrites),
        ("IngestionPrimaryWriterBasedConflictResolutionStrategy", IngestionPrimaryWriter),
        ("PreferWriterConflictResolutionStrategy", IngestionPrimaryWriter),
    ],
)
def test_strategies_have_the_names_of_their_classes(name, kind):
    for key in (KEY, "hoodie.write.conflict.resolution.strategy"):
        assert type(strategy_of(parse_transaction_options({key: PACKAGE + name}))) is kind
    assert type(strategy_of(parse_transaction_options({}))) is SimpleConcurrentFileWrites


def test_a_class_of_the_users_is_taken_from_the_options():
    found = strategy_of(parse_transaction_options({KEY: "rival_writers:OnePartition"}))
    assert sorted(found.shared(OURS, OURS)) == sorted(OURS.file_groups)
    for wrong in ("NoStrategy", "NotThere", "NeedsMore"):
        with pytest.raises(InvalidOptionError) as e:
            strategy_of(parse_transaction_options({KEY: f"rival_writers:{wrong}"}))
        assert e.value.details["option"] == KEY
    with pytest.raises(UnsupportedError, match="conflict strategy"):
        parse_write_options({KEY: "org.acme.Mine"})


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Failing", "failed: ValueError: a fault of its own"),
        ("GivesNone", "failed: TypeError"),
        ("GivesFileIds", "and not its partition and file id"),
    ],
)
@pytest.mark.parametrize("early", ["false", "true"])
def test_a_class_of_the_users_that_is_wrong_is_named_and_its_write_undone(
    tmp_path, monkeypatch, name, says, early
):
    path = str(tmp_path / "t")
    make(path)
    between = Between(
        monkeypatch, path, lambda uri: HudiTable.open(uri).upsert(rows("ax"), options=OCC), DURING
    )
    given = {**OCC, KEY: f"rival_writers:{name}"}
    with pytest.raises(InvalidOptionError, match=says) as e:
        HudiTable.open(path).upsert(
            rows("ax", v=9),
            options={**given, "hoodie.write.concurrency.early.conflict.detection.enable": early},
        )
    assert e.value.details["option"] == KEY
    assert between.refused is None
    assert state(path) == between.state
    assert HudiTable.open(path).timeline.pending_writes() == ()
