"""Buckets from a shell."""

import json

import pytest

from hudi_timeline import HudiTable

ROWS = [{"id": f"k{n}", "p": "a", "ts": 1} for n in range(20)]


@pytest.mark.req("NEW-22", "NEW-03", "IX-28")
def test_buckets_are_shown_and_resized(hudi, tmp_path):
    table = HudiTable.create(
        str(tmp_path / "t"), ROWS, name="t", record_keys="id", partition_fields="p", ordering_fields="ts",
        options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    )  # fmt: skip
    table.upsert(ROWS)

    def ran(*arguments):
        code, out, error = hudi("buckets", *arguments, "-o", "json")
        assert code == 0, error
        return json.loads(out)

    shown = ran("show", table.uri)
    assert [(r["partition"], r["bucket"], r["of"]) for r in shown] == [("a", 0, 2), ("a", 1, 2)]
    dry = ran("resize", table.uri, "4", "--dry-run")
    assert (dry["instant"], dry["buckets"], dry["files"]) == ("", ["a: 2 to 4"], 0)
    assert [line.split(" into ")[0] for line in dry["planned"]] == [f"split a: {r['file_id']}" for r in shown]
    done = ran("resize", table.uri, "4")
    assert (done["rows"], done["engine"]) == (20, "SIMPLE")
    assert {r["of"] for r in ran("show", table.uri)} == {4}
    code, _, error = hudi("buckets", "resize", table.uri, "3")
    assert (code, "--overwrite" in error) == (1, True)
    fewer = ran("resize", table.uri, "3", "--overwrite")
    assert (fewer["buckets"], [line.split()[0] for line in fewer["planned"]]) == (
        ["a: 4 to 3"],
        ["redistribute"],
    )
    assert ran("resize", table.uri, "4", "--overwrite")["rows"] == 20
    code, _, error = hudi("buckets", "resize", table.uri)
    assert (code, "nothing says how many" in error) == (1, True)
    grown = ran("resize", table.uri, "8", "--partition", "a", "--engine", "EXTENDIBLE_HASHING")
    assert (grown["engine"], grown["buckets"]) == ("EXTENDIBLE_HASHING", ["a: 4 to 8"])
