"""Plans whose writer gave their fields other types: refused as a whole, before anything of them is done."""

import copy
import io
import json

import fastavro
import pytest

from hudi_format.errors import CorruptFileError
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.action_metadata import parse_action

NAME = "HoodieCleanerPlan"
TEXT = ["null", "string"]


def plan(change, record):
    """A container of the cleaner's plan under a schema that `change` has changed."""
    schema = copy.deepcopy(json.loads(avro_files.schema_text(NAME)))
    change({f["name"]: f for f in schema["fields"]}, schema["fields"])
    out = io.BytesIO()
    fastavro.writer(
        out, schema, [{f["name"]: record.get(f["name"], f.get("default")) for f in schema["fields"]}]
    )
    return out.getvalue()


def of_type(name, kind):
    def change(by_name, _):
        by_name[name]["type"] = kind
        by_name[name].pop("default", None)

    return change


def without(name):
    return lambda by_name, fields: fields.remove(by_name[name])


RECORD = {
    "earliestInstantToRetain": None,
    "policy": "KEEP_LATEST_COMMITS",
    "lastCompletedCommitTimestamp": "",
    "filePathsToBeDeletedPerPartition": {},
}
INSTANT = {
    "type": "record",
    "name": "HoodieActionInstant",
    "fields": [{"name": "timestamp", "type": "string"}],
}
BAD = {
    "earliestInstantToRetain is a string": (of_type("earliestInstantToRetain", TEXT), "x"),
    r"earliestInstantToRetain.action is missing": (
        of_type("earliestInstantToRetain", ["null", INSTANT]),
        {"timestamp": "1"},
    ),
    r"filePathsToBeDeletedPerPartition\[\]\[\] is a string": (
        of_type(
            "filePathsToBeDeletedPerPartition",
            {"type": "map", "values": {"type": "array", "items": "string"}},
        ),
        {"p": ["x"]},
    ),
    "filePathsToBeDeletedPerPartition is a array": (
        of_type("filePathsToBeDeletedPerPartition", {"type": "array", "items": "string"}),
        ["x"],
    ),
    "policy is a bytes": (of_type("policy", "bytes"), b"x"),
    "policy is missing": (without("policy"), None),
}


@pytest.mark.parametrize("what", BAD)
def test_a_plan_of_another_shape_is_refused(what):
    change, value = BAD[what]
    name = what.replace("\\", "").partition(".")[0].partition("[")[0].partition(" ")[0]
    data = plan(change, {**RECORD, name: value})
    with pytest.raises(CorruptFileError, match=what) as e:
        avro_files.parse(NAME, data, path="f")
    assert e.value.file == "f"
    assert e.value.remedy


def more(by_name, fields):
    fields.append({"name": "ofTomorrow", "type": {"type": "array", "items": "double"}, "default": []})


@pytest.mark.parametrize(
    "change",
    [
        lambda *_: None,
        more,
        without("extraMetadata"),
        without("partitionsToBeDeleted"),
        of_type("version", "long"),
    ],
    ids=["as it is", "a field more", "an optional one less", "another optional one less", "a wider number"],
)
def test_what_other_releases_write_is_read(change):
    record = {**RECORD, "version": 2, "extraMetadata": {}, "partitionsToBeDeleted": []}
    assert parse_action("clean", "REQUESTED", plan(change, record)).policy == RECORD["policy"]


def test_records_of_a_type_that_is_never_written_here_are_read():
    schema = {"type": "record", "name": "HoodieIndexPlan", "fields": [{"name": "version", "type": "int"}]}
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"version": 1}])
    assert avro_files.parse("HoodieIndexPlan", out.getvalue()) == {"version": 1}
