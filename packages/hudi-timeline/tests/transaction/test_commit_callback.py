"""Who is told of a completed write: a Python function, or a server."""

import pyarrow as pa
import pytest
from commit_listeners import heard, jobs
from http_listener import listening

from hudi_format.errors import InvalidOptionError, UnsupportedError
from hudi_timeline import HudiTable

CALLBACK = "hoodie.write.commit.callback."
ON = {CALLBACK + "on": True}
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
LISTENER = {**ON, CALLBACK + "class": "commit_listeners:note"}
LAZY = {"hoodie.cleaner.policy.failed.writes": "LAZY"}


def rows(*ids):
    return pa.table({"id": list(ids), "p": ["x"] * len(ids), "v": list(range(len(ids)))}, SCHEMA)


@pytest.fixture
def table(tmp_path):
    heard.clear()
    jobs.clear()
    given = {"name": "t", "record_keys": ["id"], "partition_fields": ["p"]}
    return HudiTable.create(str(tmp_path / "t"), SCHEMA, **given)


@pytest.fixture
def server():
    with listening() as made:
        yield made


@pytest.mark.req("IN-09", "MB-04")
def test_downstream_jobs_move_by_the_checkpoints_that_commits_publish(table):
    """Two writers overlap: the one that began first ends last, and a job downstream sees the rows of each once."""
    seen = []

    def downstream(commit):
        begin = heard[-1].completion if heard else "000"
        order = {"hudi.read.incremental.order": "completion"}
        scan = HudiTable.open(commit.uri).read_incremental(begin, commit.completion, options=order)
        seen.append(scan.to_arrow()["id"].to_pylist())

    def meanwhile(change):
        within.append(HudiTable.open(table.uri).insert(rows("c"), options={**given, **LAZY}))

    jobs.append(downstream)
    given, within = {**LISTENER, "hoodie.parquet.small.file.limit": "0"}, []
    first = table.insert(rows("a"), options=given)
    last = table.insert(rows("b"), options=given, validators=[meanwhile])
    ended = [first, *within, last]
    assert first.instant < last.instant < within[0].instant
    assert [(c.instant, c.completion) for c in heard] == [(r.instant, r.completion) for r in ended]
    assert all(c.instant < c.completion for c in heard)
    assert seen == [["a"], ["c"], ["b"]]


@pytest.mark.req("MB-04")
def test_a_function_is_told_of_each_commit_and_of_nothing_else(table):
    given = LISTENER
    result = table.upsert(rows("a", "b"), options=given)
    replaced = table.insert_overwrite(rows("c"), options=given)
    assert not table.upsert(rows(), options={**given, "hoodie.allow.empty.commit": False}).instant
    with pytest.raises(InvalidOptionError):
        table.upsert(rows("d"), options={**given, "hoodie.combine.before.upsert": "perhaps"})
    assert [(c.instant, c.action, c.table, c.uri) for c in heard] == [
        (result.instant, "commit", "t", table.uri),
        (replaced.instant, "replacecommit", "t", table.uri),
    ]
    assert heard[0].write_stats == result.write_stats
    assert "schema" in heard[0].extra


@pytest.mark.req("MB-01", "IN-09")
def test_each_commit_is_posted(table, server):
    more = {CALLBACK + "http.api.key": "k1", CALLBACK + "http.custom.headers": "X-Job: trips ; X-Run:7"}
    result = table.upsert(rows("a"), options={**ON, CALLBACK + "http.url": server.url, **more})
    assert result.warnings == ()
    ((path, headers, body),) = server.posted
    assert path == "/hudi"
    assert {n: headers[n] for n in ("Content-Type", "Hudi-Callback-Key", "X-Job", "X-Run")} == {
        "Content-Type": "application/json; charset=UTF-8", "Hudi-Callback-Key": "k1", "X-Job": "trips", "X-Run": "7",
    }  # fmt: skip
    assert (body["commitTime"], body["completionTime"]) == (result.instant, result.completion)
    assert body["hoodieWriteStat"][0]["numInserts"] == 1


@pytest.mark.parametrize("way", ["a status", "nobody there", "a function"])
def test_a_callback_that_fails_is_a_warning_of_the_completed_write(table, server, way):
    if way == "a status":
        server.answer = 500
    given = (
        {**ON, CALLBACK + "class": "commit_listeners:fail"}
        if way == "a function"
        else {**ON, CALLBACK + "http.url": server.url}
    )
    if way == "nobody there":
        given[CALLBACK + "http.url"] = "http://127.0.0.1:1/"
    result = table.upsert(rows("a"), options=given)
    (warning,) = result.warnings
    assert "callback failed" in warning
    assert table.read().to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, InvalidOptionError),
        ({"http.url": "ftp://host/x"}, InvalidOptionError),
        ({"http.url": "http://"}, InvalidOptionError),
        ({"http.url": "http://h/", "http.custom.headers": "no-value"}, InvalidOptionError),
        ({"http.url": "http://h/", "http.custom.headers": "a b:c"}, InvalidOptionError),
        ({"http.url": "http://h/", "http.timeout.seconds": "0"}, InvalidOptionError),
        ({"class": "no_such_module:f"}, InvalidOptionError),
        (
            {"class": "org.apache.hudi.utilities.callback.kafka.HoodieWriteCommitKafkaCallback"},
            UnsupportedError,
        ),
    ],
)
def test_callbacks_that_cannot_be_are_refused_before_the_write(table, options, error):
    with pytest.raises(error, match="callback") as e:
        table.upsert(rows("a"), options={**ON, **{CALLBACK + k: v for k, v in options.items()}})
    assert e.value.remedy
    assert table.timeline.instants == ()
    # Switched off, they are nothing but options.
    assert table.upsert(rows("a"), options={CALLBACK + "class": "org.acme.Callback"}).inserted == 1
