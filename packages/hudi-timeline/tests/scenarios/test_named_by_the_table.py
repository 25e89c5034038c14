"""Names of functions and classes that a table's files hold: nothing of them is imported unless the caller allows it."""

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hudi_timeline
from hudi_format.errors import FunctionNotAllowedError, HudiError, InvalidOptionError
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable, allow_functions, table_config
from hudi_timeline.bug_capsule import make_capsule
from hudi_timeline.cli.main import app
from hudi_timeline.options import allowed_functions
from hudi_timeline.testing import table_builder
from hudi_timeline.testing.table_builder import TableBuilder

PROBE = "probe_{}"
BODY = """\
import os
with open(os.environ["PROBE_RECORD"], "a") as f:
    f.write(__name__ + "\\n")
from os import system
def merge(old, new, context): return new
class Named: pass
"""


@pytest.fixture
def probe(tmp_path, monkeypatch):
    """A module of a name that no other test has, which leaves a line where it is imported."""
    name = PROBE.format(tmp_path.name.replace("-", "_"))
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / f"{name}.py").write_text(BODY)
    monkeypatch.setenv("PROBE_RECORD", str(tmp_path / "record"))
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.syspath_prepend(str(folder))
    yield name
    sys.modules.pop(name, None)


def imported(tmp_path):
    record = tmp_path / "record"
    return record.read_text().split() if record.exists() else []


def in_properties(*names, name="Named", **more):
    """A place: entries of hoodie.properties."""
    return lambda built, probe: {**dict.fromkeys(names, f"{probe}:{name}"), **more}


MERGE = "hudi.merge"
CALLBACK = "hoodie.write.commit.callback."
PLACES = {
    "merge function": in_properties(MERGE, name="merge"),
    "payload class": in_properties("hoodie.compaction.payload.class"),
    "payload class of writes": in_properties("hoodie.datasource.write.payload.class"),
    "key generator": in_properties("hoodie.table.keygenerator.class"),
    "type of key generator": in_properties("hoodie.table.keygenerator.type"),
    "parser of time keys": in_properties("hoodie.deltastreamer.keygen.timebased.input.dateformat.parser.class"),
    "merge strategy": in_properties("hoodie.compaction.record.merger.strategy", "hoodie.record.merge.strategy.id"),
    "merger classes": in_properties("hoodie.datasource.write.record.merger.impls", "hoodie.write.record.merger.impls"),
    "index class": in_properties("hoodie.index.class", "hoodie.index.type"),
    "callback": in_properties(CALLBACK + "class", **{CALLBACK + "on": "true"}),
    "callback at the start": in_properties("hoodie.client.init.callback.classes"),
    "validators": in_properties("hoodie.precommit.validators", "hudi.validators"),
    "partitioner": in_properties("hoodie.bulkinsert.user.defined.partitioner.class"),
    "lock provider": in_properties("hoodie.write.lock.provider", "hoodie.write.lock.conflict.resolution.strategy"),
    "bootstrap index": in_properties("hoodie.bootstrap.index.class", "hoodie.bootstrap.mode.selector"),
    "table format": in_properties("hoodie.table.format"),
    "storage class": in_properties("hoodie.storage.class", "hoodie.hfile.storage"),
    "metadata writer": in_properties("hoodie.compaction.strategy", "hoodie.clustering.plan.strategy.class"),
}  # fmt: skip


def _schema_with(probe):
    """The schema of built tables with names in every place that Avro has for them."""
    schema = json.loads(table_builder.to_avro(with_meta(table_builder.SCHEMA), "made"))
    for field in schema["fields"]:
        field["java-class"] = field["python-class"] = f"{probe}:Named"
        field["logicalType"] = f"{probe}.Named"
    return json.dumps({**schema, "namespace": probe, "doc": f"{probe}:merge", "java-class": f"{probe}.Named"})


def log_header(built, probe):
    text = _schema_with(probe)
    real, table_builder.to_avro = table_builder.to_avro, lambda *_: text
    try:
        built.commit("headed", built.log("headed", {"k1": 7}))
    finally:
        table_builder.to_avro = real
    return {}


def commit_extras(built, probe):
    """Names in the extraMetadata of a commit, its schema among it."""
    instant = built.commit("extra", built.log("extra", {"k2": 8}))
    file = Path(built.uri) / ".hoodie" / f"{instant}.deltacommit"
    content = json.loads(file.read_text())
    content["extraMetadata"].update(
        {
            MERGE: f"{probe}:merge", "hudi.index.type": f"{probe}:Named", "hudi.validators": f"{probe}:merge",
            "payload": f"{probe}:Named", "latest_schema": f"{probe}:Named", CALLBACK + "class": f"{probe}:merge",
        }
    )  # fmt: skip
    file.write_text(json.dumps(content))
    return {}


def created_schema(built, probe):
    return {"hoodie.table.create.schema": _schema_with(probe)}


PLACES.update(
    {"log block header": log_header, "extra metadata": commit_extras, "created schema": created_schema}
)


def built_table(path, probe, place, table_type="MERGE_ON_READ"):
    built = TableBuilder(LocalStorage(str(path)), table_type=table_type)
    built.commit("first", built.base("first", {"k1": 1, "k2": 2}))
    if table_type == "MERGE_ON_READ":
        built.commit("second", built.log("second", {"k1": 5}))
    entries = PLACES[place](built, probe)
    found = table_config.read_file(built.storage, table_config.PROPERTIES_FILE)
    (path / ".hoodie" / "hoodie.properties").write_bytes(table_config.render({**found, **entries}))
    return str(path)


def everything(uri, folder):
    """What a reader, a writer and a keeper of tables does; each ends in a result or a typed error."""
    rows = [{"id": "k9", "v": 9, "ts": 0, "p": "p0"}]

    def table():
        return HudiTable.open(uri)

    steps = (
        lambda: table().read(meta_columns=True).to_arrow(),
        lambda: table().read(query="read_optimized", meta_columns=True).to_arrow(),
        lambda: table().read(as_of=table().timeline.instants[-1].time, meta_columns=True).to_arrow(),
        lambda: table().read_incremental("000", meta_columns=True).to_arrow(),
        lambda: table().read_changes("000").to_arrow(),
        lambda: table().get(["k1"], meta_columns=True),
        lambda: table().read().explain(),
        lambda: table().verify(deep=True),
        lambda: table().inspect.commits(),
        lambda: table().inspect.file_slices(),
        lambda: table().check_merge(),
        lambda: table().clean(),
        lambda: table().archive(),
        lambda: table().savepoint(),
        lambda: table().upsert(rows),
        lambda: table().bulk_insert(rows),
        lambda: table().delete("id = 'k1'"),
        lambda: table().restore(table().timeline.instants[0].time),
        lambda: make_capsule(LocalStorage(uri), folder / "capsule.zip"),
    )
    for step in steps:
        with suppress(HudiError):
            step()
    for command in ("show", "timeline", "files", "head", "check-merge", "verify"):
        result = CliRunner().invoke(app, [command, uri])
        assert result.exception is None or isinstance(result.exception, (HudiError, SystemExit)), (
            result.exception
        )


@pytest.mark.sampled(12, values=False)
@pytest.mark.parametrize(
    ("place", "table_type"),
    [
        *((place, "MERGE_ON_READ") for place in PLACES),
        *(
            (place, "COPY_ON_WRITE")
            for place in ("merge function", "payload class", "key generator", "callback")
        ),
    ],
)
def test_nothing_that_a_table_names_is_imported(tmp_path, probe, place, table_type):
    uri = built_table(tmp_path / "t", probe, place, table_type)
    everything(uri, tmp_path)
    assert imported(tmp_path) == []
    assert probe not in sys.modules


def test_the_probe_tells_of_an_import(tmp_path, probe):
    uri = built_table(tmp_path / "t", probe, "merge function")
    with allow_functions(f"{probe}:merge"):
        assert HudiTable.open(uri).read(["id", "v"]).to_arrow().num_rows == 2
    assert imported(tmp_path) == [probe]


def test_a_function_that_only_the_table_names_is_refused_with_the_ways_to_allow_it(tmp_path, probe):
    uri = built_table(tmp_path / "t", probe, "merge function")
    with pytest.raises(FunctionNotAllowedError) as raised:
        HudiTable.open(uri).read().to_arrow()
    error = raised.value
    assert error.table == uri
    assert error.details["function"] == f"{probe}:merge"
    assert f"{probe}:merge" in error.message
    for way in ("option hudi.merge=", "allow_functions(", "HUDI_ALLOW_FUNCTIONS", "--allow-function"):
        assert way in error.remedy
    result = CliRunner().invoke(app, ["head", uri])
    assert isinstance(result.exception, FunctionNotAllowedError)
    assert imported(tmp_path) == []


def test_each_way_of_allowing_runs_the_function_and_no_other(tmp_path, probe, monkeypatch):
    uri = built_table(tmp_path / "t", probe, "merge function")
    name = f"{probe}:merge"

    def read(**given):
        return HudiTable.open(uri, **given).read(["id", "v"]).to_arrow().num_rows

    assert read(options={MERGE: name}) == 2
    with allow_functions("other:f", name):
        assert read() == 2
        seen = []
        thread = threading.Thread(target=lambda: seen.append(read()))
        thread.start()
        thread.join()
        assert seen == [2]
    with pytest.raises(FunctionNotAllowedError):
        read()
    monkeypatch.setenv(allowed_functions.ENVIRONMENT, f"other:f, {name}")
    assert read() == 2
    monkeypatch.delenv(allowed_functions.ENVIRONMENT)
    result = CliRunner().invoke(app, ["--allow-function", name, "head", uri])
    assert result.exit_code == 0, result.output
    assert isinstance(CliRunner().invoke(app, ["head", uri]).exception, FunctionNotAllowedError)
    for other in (f"{probe}:Named", f"{probe}x:merge", f"{probe}.sub:merge", f"{probe}x.*", "os.*"):
        with allow_functions(other), pytest.raises(FunctionNotAllowedError):
            read()


def test_a_plain_call_allows_until_the_process_ends(tmp_path, probe, monkeypatch):
    monkeypatch.setattr(allowed_functions, "_allowed", type(allowed_functions._allowed)())
    uri = built_table(tmp_path / "t", probe, "merge function")
    allow_functions(f"{probe}:merge")
    with allow_functions(f"{probe}:merge"):
        pass  # what another has allowed stays allowed
    assert HudiTable.open(uri).read().to_arrow().num_rows == 2


@pytest.mark.parametrize(
    "named", ["os.system", "system", "Named", "no_such", "merge.__globals__", "__builtins__"]
)
def test_a_package_allows_the_functions_that_it_defines_and_nothing_that_they_reach(tmp_path, probe, named):
    uri = built_table(tmp_path / "t", probe, "merge function")
    storage = LocalStorage(uri)
    with allow_functions(f"{probe}.*"):
        allowed_functions.check_allowed(f"{probe}:merge", given=None, storage=storage)
        with pytest.raises((FunctionNotAllowedError, InvalidOptionError)):
            allowed_functions.check_allowed(f"{probe}:{named}", given=None, storage=storage)
        with pytest.raises(FunctionNotAllowedError):
            allowed_functions.check_allowed(f"{probe}.__main__:f", given=None, storage=storage)


@pytest.mark.parametrize(
    "name", ["", "*", "f", "module", ".module:f", "module:", "a b:f", "a..b:f", "m:f()", ".*", 5]
)
def test_what_is_no_name_of_a_function_is_not_allowed(name):
    with pytest.raises(InvalidOptionError):
        allow_functions(name)


@pytest.mark.parametrize("name", [".x:f", "..x:f", "x.:f", "x:.f", "x:f.", ":f", "x:", "x y:f"])
def test_relative_and_broken_names_in_a_table_are_typed_errors(tmp_path, probe, name):
    uri = built_table(tmp_path / "t", probe, "merge function")
    found = table_config.read_file(LocalStorage(uri), table_config.PROPERTIES_FILE)
    Path(uri, ".hoodie", "hoodie.properties").write_bytes(table_config.render({**found, MERGE: name}))
    for options in (None, {MERGE: name}):
        with pytest.raises(InvalidOptionError):
            HudiTable.open(uri, options=options).read().to_arrow()


@pytest.mark.parametrize("allowed", ["{}:merge", "{}.*"])
@pytest.mark.sampled(2)
def test_an_allowed_name_is_never_imported_from_the_tables_own_folder(tmp_path, probe, allowed):
    uri = built_table(tmp_path / "t", probe, "merge function")
    inside = Path(uri, f"{probe}.py")
    inside.write_text(BODY)
    program = (
        "from hudi_timeline import HudiTable, allow_functions\n"
        f"allow_functions({allowed.format(probe)!r})\n"
        "HudiTable.open('.').read().to_arrow()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=uri, capture_output=True, text=True)
    assert "FunctionNotAllowedError" in done.stderr, done.stderr
    assert "own folder" in done.stderr
    assert imported(tmp_path) == []


def test_who_made_a_table_with_a_function_goes_on_with_it_and_others_say_so(tmp_path, probe):
    name = f"{probe}:merge"
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    made = HudiTable.create(
        str(tmp_path / "t"),
        schema,
        name="t",
        record_keys=["id"],
        ordering_fields=["ts"],
        options={MERGE: name},
    )
    made.upsert([{"id": "a", "ts": 1}])
    made.upsert([{"id": "a", "ts": 2}])
    other = HudiTable.open(made.uri)
    with pytest.raises(FunctionNotAllowedError):
        other.upsert([{"id": "a", "ts": 3}])
    assert other.upsert([{"id": "a", "ts": 3}], options={MERGE: name}).updated == 1
    with allow_functions(name):
        assert other.upsert([{"id": "a", "ts": 4}]).updated == 1
    assert other.read(["ts"]).to_arrow().column("ts").to_pylist() == [4]


def test_allowing_is_a_public_name_of_the_package():
    assert hudi_timeline.allow_functions is allow_functions
    assert "allow_functions" in dir(hudi_timeline)


def test_what_merges_no_records_needs_no_permission(tmp_path, probe):
    uri = built_table(tmp_path / "t", probe, "merge function")
    table = HudiTable.open(uri)
    assert table.verify() == []
    assert table.read(query="read_optimized").to_arrow().num_rows == 2
    assert table.inspect.commits().num_rows == 2
    assert table.clean(dry_run=True).plan.count == 0
    assert make_capsule(LocalStorage(uri), tmp_path / "capsule.zip").files
    for command in ("show", "timeline", "files", "verify"):
        assert CliRunner().invoke(app, [command, uri]).exit_code == 0
    (finding,) = table.verify(deep=True)  # what was not looked at is said, and is no damage
    assert (finding.code, finding.severity) == ("merge-not-allowed", "warning")
    assert f"{probe}:merge" in finding.message
    assert imported(tmp_path) == []
