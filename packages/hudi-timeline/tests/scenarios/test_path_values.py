"""Warnings about partition values that are read back in another form."""

import itertools

import pytest

from hudi_timeline import HudiTable

WRITE = "hoodie.datasource.write."
VALUES = ["a%20b", "p=x", "50%", "x=y", "a b", "%41", "q", None]
STYLES = list(itertools.product(("false", "true"), ("false", "true"), ("cow", "mor")))


@pytest.mark.parametrize(("hive", "encode", "kind"), STYLES, ids="-".join)
@pytest.mark.sampled(2)
def test_a_write_tells_of_exactly_the_values_that_its_snapshot_has_in_another_form(
    tmp_path, hive, encode, kind
):
    rows = [{"id": str(n), "p": value, "v": n} for n, value in enumerate(VALUES)]
    options = {WRITE + "hive_style_partitioning": hive, WRITE + "partitionpath.urlencode": encode}
    table = HudiTable.create(
        tmp_path / "t", rows, record_keys="id", partition_fields="p", table_type=kind, options=options
    )
    for row in rows:
        told = [w for w in table.upsert([row]).warnings if "read back in another form" in w]
        (read,) = table.read(["p"], f"id = '{row['id']}'").to_arrow()["p"].to_pylist()
        if read == row["p"]:
            assert told == []
        else:
            (text,) = told
            assert f"{row['p']!r} as {read!r}" in text
            assert "partitionpath.urlencode=true" in text
    changed = {v for v in VALUES if v is not None} - set(table.read(["p"]).to_arrow()["p"].to_pylist())
    assert bool(changed) == (kind == "cow" and encode == "false")


def test_values_of_several_columns_are_told_by_their_places(tmp_path):
    rows = [
        {"id": str(n), "p": p, "q": q}
        for n, (p, q) in enumerate(itertools.product(["a%20b", "p=x"], ["q", "q=%41"]))
    ]
    table = HudiTable.create(tmp_path / "t", rows, record_keys="id", partition_fields=["p", "q"])
    (text,) = (w for w in table.upsert(rows).warnings if "another form" in w)
    assert "values of p, q" in text
    for told in ("'a%20b' as 'a b'", "'p=x' as 'x'", "'q=%41' as 'A'"):
        assert text.count(told) == 1
    assert "more" not in text
    assert {(r["p"], r["q"]) for r in table.read().to_arrow().to_pylist()} == set(
        itertools.product(["a b", "x"], "qA")
    )
