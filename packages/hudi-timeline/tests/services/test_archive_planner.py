"""Which instants leave the active timeline."""

from datetime import UTC

import pytest
from archived_tables import AGGRESSIVE, ROWS, go_on, replaced, row, writes_of

from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.service_config import ServiceConfig
from hudi_timeline.services.archive_planner import limits, make_plan
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import parse_instant_file

WORDS = {"c": "commit", "d": "deltacommit", "R": "replacecommit", "k": "compaction", "x": "clean",
         "b": "rollback", "s": "savepoint"}  # fmt: skip
STATES = {"": "", "?": ".inflight", "!": ".requested"}


def names_of(text):
    """`1c 2c? 2s`: time, action, and state of what is not completed, as names of files."""
    for word in text.split():
        state = word[-1] if word[-1] in "?!" else ""
        body = word.rstrip("?!")
        action = WORDS[body[-1]]
        yield (
            f"{body[:-1]}.inflight"
            if (action, state) == ("commit", "?")
            else f"{body[:-1]}.{action}{STATES[state]}"
        )


def instants_of(text):
    return Timeline.of_files(filter(None, map(parse_instant_file, names_of(text))))


def commits(count, word="c"):
    return " ".join(f"2026010100{n:02d}00000{word}" for n in range(count))


def at(n, word):
    return f" 2026010100{n:02d}00000{word}"


class Nowhere:
    """No file is to be read."""

    uri = "nowhere"


def stored(folder, text):
    """A store with these instants, of which no one wrote a file."""
    (folder / ".hoodie").mkdir(exist_ok=True)
    for name in names_of(text):
        (folder / ".hoodie" / name).write_text('{"partitionToWriteStats": {}}')
    return LocalStorage(str(folder))


def archived(text, kind="COPY_ON_WRITE", storage=None, **options):
    """Minutes of the instants that would leave."""
    table = table_config.TableConfig(properties={"hoodie.table.type": kind})
    snapshot = TableSnapshot(storage or Nowhere(), table, instants_of(text))
    plan = make_plan(snapshot, ServiceConfig(**options))
    return [int(i.time[10:12]) for i in plan.instants]


def few(retained=1, least=2, most=4, **more):
    return {
        "clean_commits_retained": retained,
        "archive_min_commits": least,
        "archive_max_commits": most,
        **more,
    }


@pytest.mark.req("TS-31", "TM-20")
@pytest.mark.parametrize(
    ("count", "options", "want"),
    [
        (5, few(1, 2, 4), (2, 4)),
        (5, few(2, 2, 4), (3, 5)),
        (5, few(4, 2, 4), (5, 7)),
        (5, few(5, 2, 4), (2, 4)),  # nothing could be cleaned yet
        (9, few(3, 4, 6), (4, 6)),
        (9, few(3, 3, 5), (4, 6)),
        (9, few(1, 3, 4), (3, 4)),
        (9, few(9, 2, 3), (2, 3)),
        (9, few(1, 2, 4, clean_policy="KEEP_LATEST_FILE_VERSIONS"), (2, 4)),
        # Hours count back from the newest commit, which is at minute 8: all that are younger stay, and one more.
        (9, few(1, 2, 4, clean_policy="KEEP_LATEST_BY_HOURS", clean_hours_retained=1), (10, 12)),
        (70, {}, (20, 30)),
    ],
)
def test_how_many_commits_stay_follows_from_the_policy_of_cleaning(count, options, want):
    assert limits(instants_of(commits(count)), ServiceConfig(**options), UTC) == want


def test_hours_are_those_before_the_newest_commit_however_long_ago_it_was():
    timeline = instants_of("20200101080000000c 20200101093000000c 20200101100000000c 20200101110000000c")
    config = ServiceConfig(**few(1, 1, 2, clean_policy="KEEP_LATEST_BY_HOURS", clean_hours_retained=2))
    assert limits(timeline, config, UTC) == (4, 5)


def test_a_timeline_without_a_commit_or_with_a_bootstrap_has_the_limits_of_the_options():
    for text in ("", "00000000000001c", "1x 2x 3x"):
        for policy in ("KEEP_LATEST_COMMITS", "KEEP_LATEST_BY_HOURS"):
            assert limits(instants_of(text), ServiceConfig(**few(1, 2, 4, clean_policy=policy)), UTC) == (
                2,
                4,
            )


@pytest.mark.req("TS-31", "TM-20")
@pytest.mark.parametrize(
    ("timeline", "want"),
    [
        (commits(4), []),
        (commits(5), [0, 1, 2]),
        (commits(9), [0, 1, 2, 3, 4, 5, 6]),
        # An open write holds back the commit before it, and itself where there is none.
        (commits(9).replace("04", "99") + at(4, "c?"), [0, 1, 2]),
        (commits(9).replace("04", "99") + at(4, "R!"), [0, 1, 2]),
        ("20250101000000000c? " + commits(9), []),
        # Cleanings and rollbacks have their own counts, and nothing holds them back.
        (commits(2) + "".join(at(n, "x") for n in range(2, 7)), [2, 3, 4]),
        (commits(2) + "".join(at(n, "b") for n in range(2, 6)), []),
        ("20250101000000000c? " + commits(2) + "".join(at(n, "b") for n in range(2, 7)), [2, 3, 4]),
        # A savepoint holds back all from its commit on.
        (commits(9) + at(3, "s"), [0, 1, 2]),
        (commits(9) + at(0, "s"), []),
        # One that was begun, and whose writer died, is none.
        (commits(9) + at(3, "s?"), [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_what_is_archived(timeline, want):
    assert archived(timeline, **few()) == want


def test_beyond_a_savepoint_the_limit_counts_what_may_go(tmp_path):
    # Two stay, one of them the savepoint's: Apache Hudi takes as many as are too many, wherever they are.
    saved = commits(9) + at(2, "s")
    assert archived(saved, storage=stored(tmp_path, saved), **few(archive_beyond_savepoint=True)) == [
        0,
        1,
        3,
        4,
        5,
        6,
        7,
    ]


def test_savepoints_make_no_newer_commit_go(tmp_path):
    """Apache Hudi counts those that stay and not which: it archives the newest commit here."""
    saved = commits(9) + "".join(at(n, "s") for n in range(1, 7))
    assert archived(saved, storage=stored(tmp_path, saved), **few(archive_beyond_savepoint=True)) == [0, 7]
    assert archived(saved, storage=stored(tmp_path, saved), **few(3, archive_beyond_savepoint=True)) == [0]
    versions = few(archive_beyond_savepoint=True, clean_policy="KEEP_LATEST_FILE_VERSIONS")
    assert archived(saved, storage=stored(tmp_path, saved), **versions) == [0, 7]


@pytest.mark.parametrize(
    ("timeline", "want"),
    [
        (commits(9, "d"), [0, 1, 2, 3, 4, 5]),
        (commits(9, "d").replace("0000d", "0000c", 1), [0, 1, 2, 3, 4, 5]),
        (commits(8, "d") + at(8, "c"), [0, 1, 2, 3, 4, 5, 6]),
        (commits(7, "d") + at(7, "c") + at(8, "d"), [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_merge_on_read_tables_keep_what_the_next_compaction_counts(timeline, want):
    assert archived(timeline, "MERGE_ON_READ", **few(compaction_delta_commits=3)) == want


@pytest.mark.req("TS-31", "RC-06")
def test_rows_that_were_replaced_do_not_come_back_beyond_a_savepoint(tmp_path):
    """Apache Hudi 0.15 archives the replacement: the savepoint's rows are the table's again, the new ones are gone."""
    table, at = replaced(tmp_path / "t", lambda t: t.savepoint())
    (warning,) = go_on(table)
    assert at in warning
    assert at in writes_of(table)
    table.delete_savepoint(table.savepoints[0])
    assert go_on(table) == ()
    assert at not in writes_of(table)
    assert len(writes_of(table)) <= 4


@pytest.mark.req("TS-31", "RC-06")
def test_the_newest_files_of_a_group_keep_their_commit_beyond_a_savepoint(tmp_path):
    """Apache Hudi 0.15 archives that commit, and then answers with the rows of before it."""
    table = HudiTable.create(
        str(tmp_path / "t"),
        ROWS,
        name="t",
        record_keys=["id"],
        partition_fields=["p"],
        ordering_fields=["ts"],
    )
    table.insert(row("x", "a", 1), options=AGGRESSIVE)
    table.insert(row("y", "b", 1), options=AGGRESSIVE)
    table.savepoint()
    updated = table.upsert(row("x", "a", 2), options=AGGRESSIVE).instant
    between = [table.insert(row(f"z{n}", "b", n), options=AGGRESSIVE) for n in range(9)]
    warnings = {w for result in between for w in result.warnings}
    assert any(updated in w and "savepoint" in w for w in warnings)
    assert updated in writes_of(table)
    assert between[0].instant not in writes_of(table)
    table.delete_savepoint(table.savepoints[0])
    assert table.insert(row("last", "b"), options=AGGRESSIVE).warnings == ()
    assert updated not in writes_of(table)
    assert table.read(columns=["ts"], filter="id = 'x'").to_arrow()["ts"].to_pylist() == [2]
