"""New instants: after every other, or an error that says why not."""

from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest

from hudi_format.errors import ClockError, InvalidOptionError
from hudi_format.model import OverwrittenInstants
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline import instant_generator
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import format_instant, parse_instant, parse_instant_file
from hudi_timeline.timeline.instant_generator import new_instant, wait_for_next_tick

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
pytestmark = pytest.mark.req("TM-05", "TM-07")


@pytest.fixture(autouse=True)
def fresh_memory(monkeypatch):
    monkeypatch.setattr(instant_generator, "_last_given", {})


def config(zone="UTC"):
    return TableConfig({"hoodie.table.name": "t", "hoodie.table.timeline.timezone": zone})


def timeline_of(*names):
    return Timeline.of_files(filter(None, map(parse_instant_file, names)))


def at(moment):
    return lambda: moment.timestamp()


def test_an_instant_is_the_wall_clock_of_the_tables_zone():
    assert new_instant(Timeline(), config(), at(NOON)) == "20260301120000000"
    local = format_instant(datetime.fromtimestamp(NOON.timestamp()))
    assert new_instant(Timeline(), config("LOCAL"), at(NOON)) == local


@pytest.mark.parametrize(
    "name",
    [
        "{}.commit",
        "{}.commit.requested",
        "{}.inflight",
        "{}.clean.requested",
        "{}.rollback",
        "{}.replacecommit.requested",
        "{}.restore.inflight",
        "{}.compaction.requested",
        "{}.indexing.requested",
        "{}.savepoint",
    ],
)
def test_it_is_after_every_instant_of_any_action_in_any_state(name):
    ahead = format_instant(NOON.replace(tzinfo=None) + timedelta(milliseconds=900))
    instant = new_instant(timeline_of("20250101000000000.commit", name.format(ahead)), config(), at(NOON))
    assert instant == "20260301120000901"


def test_the_same_millisecond_gives_two_instants():
    got = [new_instant(Timeline(), config(), at(NOON)) for _ in range(3)]
    assert got == ["20260301120000000", "20260301120000001", "20260301120000002"]


@pytest.mark.req("CC-28")
def test_threads_of_one_process_never_get_one_instant_twice():
    got = []

    def take():
        for _ in range(200):
            got.append(new_instant(Timeline(), config(), at(NOON)))

    threads = [Thread(target=take) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(got)) == 800


@pytest.mark.parametrize(
    "ahead", [timedelta(seconds=1, milliseconds=1), timedelta(hours=1), timedelta(days=400)]
)
def test_a_clock_that_is_behind_by_more_than_a_second_is_an_error_that_names_all(ahead):
    newest = format_instant(NOON.replace(tzinfo=None) + ahead)
    with pytest.raises(ClockError) as e:
        new_instant(timeline_of(f"{newest}.clean"), config(), at(NOON), table="/data/t")
    text = str(e.value)
    assert "hoodie.table.timeline.timezone=UTC" in text
    assert "20260301120000000" in text
    assert newest in text
    assert "/data/t" in text
    assert e.value.remedy


def test_a_rollback_steps_over_any_difference_and_no_more_than_that():
    newest = "20260302120000000"
    instants = timeline_of(f"{newest}.commit")
    assert new_instant(instants, config(), at(NOON), however_far=True) == "20260302120000001"
    assert new_instant(Timeline(), config(), at(NOON), however_far=True) == "20260301120000000"
    with pytest.raises(ClockError, match="99999999999999999"):
        new_instant(timeline_of("99999999999999999.commit"), config(), at(NOON), however_far=True)


def test_an_instant_that_is_no_time_but_greater_is_an_error():
    with pytest.raises(ClockError, match="99999999999999999"):
        new_instant(timeline_of("99999999999999999.commit"), config(), at(NOON))


def test_old_instants_of_fourteen_digits_are_stepped_over():
    instant = new_instant(
        timeline_of("20260301120000.commit"), config(), at(NOON - timedelta(milliseconds=1))
    )
    assert instant > "20260301120000"
    assert instant == "20260301120001000"
    assert new_instant(timeline_of("20260301115900.commit"), config(), at(NOON)) > "20260301115900"


def test_bootstrap_instants_are_smaller_than_any_time():
    assert new_instant(timeline_of("00000000000001.commit"), config(), at(NOON)) == "20260301120000000"


def test_a_clock_set_back_is_judged_by_the_table_alone():
    new_instant(Timeline(), config(), at(NOON + timedelta(hours=1)))
    assert new_instant(Timeline(), config(), at(NOON)) == "20260301120000000"


def test_zones_do_not_hold_up_each_other():
    utc = new_instant(Timeline(), config("UTC"), at(NOON))
    local = new_instant(Timeline(), config("LOCAL"), at(NOON))
    again = new_instant(Timeline(), config("UTC"), at(NOON))
    assert parse_instant(again) - parse_instant(utc) == timedelta(milliseconds=1)
    assert local == format_instant(datetime.fromtimestamp(NOON.timestamp()))


@pytest.mark.parametrize(
    ("written_ms", "until_ms"), [(999_995, 1_000_015), (999_979, 1_000_000), (2_000_000, 1_000_000)]
)
def test_a_file_of_this_tick_is_waited_for_and_no_other(monkeypatch, written_ms, until_ms):
    now = [1000.0]
    monkeypatch.setattr(instant_generator.time, "time", lambda: now[0])
    monkeypatch.setattr(instant_generator.time, "sleep", lambda s: now.append(now.pop() + s))
    wait_for_next_tick(written_ms)
    assert round(now[0] * 1000) == until_ms


def test_it_is_after_the_instants_of_the_table_that_was_overwritten():
    old = OverwrittenInstants(until="20260301120000500")
    assert new_instant(Timeline(overwritten=old), config(), at(NOON)) == "20260301120000501"
    with pytest.raises(ClockError):
        new_instant(Timeline(overwritten=old), config(), at(NOON - timedelta(hours=1)))
    with pytest.raises(InvalidOptionError, match="not later than"):
        new_instant(Timeline(overwritten=old), config(), at(NOON), at=old.until)
