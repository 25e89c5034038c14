"""A metadata table that another writer drops while something of it is being made or kept."""

import pytest
from listed_tables import made, rows, table, write

from hudi_format.errors import LockError, StaleSnapshotError
from hudi_format.storage.open import open_storage
from hudi_timeline import table_config
from hudi_timeline.concurrency.locks import provider
from hudi_timeline.concurrency.locks.provider import InProcessLock
from hudi_timeline.metadata_config import FOLDER
from hudi_timeline.metadata_table import index_build
from hudi_timeline.metadata_table.own_table import open_own
from hudi_timeline.services import metadata_services
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.testing import CRASH, Act, Case, Crash, Fault, Faults, preemptions
from hudi_timeline.testing.workload_table import modelled

WITHOUT = {"hoodie.metadata.enable": "false"}
ASKED = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
READS = {
    "listing": lambda t: t.read(options=ASKED).to_arrow(),
    "statistics": lambda t: t.read(filter="v > -1", options=ASKED).to_arrow(),
    "record index": lambda t: t.get([*"abcd"], meta_columns=False, options=ASKED),
}


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path / "t"))


@pytest.fixture
def dropped_meanwhile(storage, monkeypatch):
    """Has a writer drop the metadata table when the content of an index was read, before any of it is written."""
    real = index_build.read_content

    def read(snapshot, partition, indexes):
        content = real(snapshot, partition, indexes)
        write(storage, rows(4, v=1), **WITHOUT)
        assert storage.info(FOLDER) is None
        return content

    monkeypatch.setattr(index_build, "read_content", read)


def as_without(storage):
    config = table_config.load(storage)
    assert (config.metadata_partitions, config.metadata_partitions_inflight) == ((), ())
    assert [i for i in table(storage).timeline.instants if not i.completed] == []
    assert table(storage).verify(deep=True) == []
    assert storage.info(FOLDER) is None or not storage.list(f"{FOLDER}/.hoodie")


@pytest.mark.parametrize(
    ("table_type", "partition"), [("COPY_ON_WRITE", "column_stats"), ("MERGE_ON_READ", "record_index")]
)
def test_an_index_whose_metadata_table_goes_while_it_is_built_says_that_it_was_dropped(
    storage, table_type, partition, dropped_meanwhile, monkeypatch
):
    made(storage, table_type)
    result = table(storage).build_index(partition)
    assert (result.built, list(result.refused)) == ((), [partition])
    assert "dropped it" in result.refused[partition]
    as_without(storage)
    monkeypatch.undo()
    assert table(storage).build_index(partition).built == ("files", partition)
    assert table(storage).verify(deep=True) == []


def test_a_listing_that_goes_while_an_index_beside_it_is_built_does_not_count_as_built(
    storage, dropped_meanwhile
):
    made(storage)
    planned = table(storage).build_index("column_stats", mode="schedule").scheduled
    write(storage, rows(4, v=1), **WITHOUT)
    result = table(storage).build_index(mode="execute")
    assert (result.executed, result.built) == ((planned,), ())
    assert set(result.refused) == {"files", "column_stats"}
    as_without(storage)


def test_a_dead_build_goes_where_its_metadata_table_is_gone_too(storage):
    made(storage)
    planned = table(storage).build_index("column_stats", mode="schedule").scheduled
    faults = Faults(Fault(CRASH, path="*.indexing.inflight", after=True))
    with faults.process(), pytest.raises(Crash):
        table(faults.wrap(storage)).build_index(mode="execute")
    write(storage, rows(4, v=1), **WITHOUT)
    assert table(storage).drop_index("column_stats").withdrawn == (planned,)
    as_without(storage)


def test_its_services_find_nothing_to_do(storage):
    made(storage)
    context = ServiceContext.of(storage, {})
    write(storage, rows(4, v=1), **WITHOUT)
    metadata_services.maintain(context, context.service_config())
    as_without(storage)


def test_whoever_has_lost_the_lock_hears_of_that_and_of_no_table_that_is_none(storage):
    made(storage)
    lock = InProcessLock(storage.uri)
    with provider.hold(lock):
        lock.release()  # as one that expired
        storage.delete_dir(FOLDER)
        with pytest.raises(LockError):
            open_own(storage)


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("what", READS)
@pytest.mark.parametrize("other", ["drop_metadata", "drop_index", "restore"])
def test_a_read_of_a_metadata_table_that_goes_meanwhile_finds_the_rows_elsewhere(what, other):
    """Others come in before each of its steps; what is not there any more is no damage, and is not said to be."""
    act = Act(lambda t: modelled(READS[what](t)), sees=dict, name=what)
    case = Case({"reader": [act], "other": [other]}, before=["build_record_index", "build_column_stats"])
    places = 0
    for found in preemptions(case, into="reader", deep=False):
        (read,) = (done for done in found.outcome.done if done.actor == "reader")
        # Files of the commits that a restore undoes are gone with these.
        assert read.error is None or (other == "restore" and isinstance(read.error, StaleSnapshotError))
        places += read.error is None
    assert places > 5
