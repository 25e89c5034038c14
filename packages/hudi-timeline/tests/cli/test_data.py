"""Rows from a shell: queries, files and differences."""

import json

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from made_tables import at

from hudi_timeline import HudiTable


@pytest.mark.parametrize("output", ["json", "ndjson"])
def test_a_query_of_duckdb(hudi, path, output):
    query = "select p, count(*) as n from t group by p order by p"
    code, out, err = hudi("sql", path, query, "-o", output)
    assert (code, err) == (0, "")
    rows = json.loads(out) if output == "json" else [json.loads(line) for line in out.splitlines()]
    assert rows == [{"p": "a", "n": 2}, {"p": "b", "n": 1}]
    assert json.loads(
        hudi("sql", path, "select count(*) as n from t", "--as-of", at(1), "-o", "json")[1]
    ) == [{"n": 2}]


@pytest.mark.parametrize("query", ["selec", "select nothing from t", "select * from u", ""])
def test_a_query_that_gives_no_rows_is_one_line(hudi, path, query):
    code, out, err = hudi("sql", path, query)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "HUDI-E0302" in err


@pytest.mark.parametrize("ending", ["parquet", "csv", "ndjson", "jsonl", "arrow"])
def test_rows_as_a_file(hudi, path, tmp_path, ending):
    file = tmp_path / f"rows.{ending}"
    code, out, _ = hudi("export", path, str(file), "-w", "v >= 2", "-c", "id,v", "-o", "json")
    assert code == 0
    assert json.loads(out) == {"file": str(file), "rows": 2, "bytes": file.stat().st_size}
    if ending == "parquet":
        rows = pq.read_table(file).to_pylist()
    elif ending == "csv":
        rows = [{**r, "id": str(r["id"])} for r in pacsv.read_csv(file).to_pylist()]
    elif ending == "arrow":
        rows = pa.ipc.open_file(file).read_all().to_pylist()
    else:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert rows == [{"id": "2", "v": 2}, {"id": "3", "v": 3}]
    assert hudi("export", path, str(file))[0] == 1, "it is there already"
    assert hudi("export", path, str(file), "--force")[0] == 0
    assert [f.name for f in tmp_path.iterdir() if f.is_file()] == [file.name]


def test_what_cannot_be_exported_leaves_no_file(hudi, path, tmp_path):
    assert hudi("export", path, str(tmp_path / "rows.xlsx"))[0] == 2
    assert hudi("export", path, str(tmp_path / "rows.csv"), "-c", "none")[0] == 1
    assert hudi("export", path, str(tmp_path / "none" / "rows.csv"))[0] == 1
    nested = str(tmp_path / "n")
    HudiTable.create(nested, [{"id": 1, "l": [1]}], record_keys="id").insert([{"id": 1, "l": [1]}])
    code, _, err = hudi("export", nested, str(tmp_path / "rows.csv"))
    assert (code, "lists, maps and structs: l" in err) == (1, True)
    assert not [f for f in tmp_path.iterdir() if f.is_file()]


def test_the_records_that_differ_between_two_times(hudi, tmp_path):
    path = str(tmp_path / "d")
    rows = [{"id": n, "v": 1} for n in "abc"]
    table = HudiTable.create(path, rows, record_keys="id")
    first = table.insert(rows).instant
    table.upsert([{"id": "b", "v": 2}, {"id": "d", "v": 2}])
    second = table.delete("id = 'c'").instant
    found = json.loads(hudi("diff", path, first, "-o", "json")[1])
    assert [(r["change"], r["key"]) for r in found] == [("deleted", "c"), ("inserted", "d"), ("updated", "b")]
    assert {r["before"] for r in found if r["before"]} == {first}
    assert json.loads(hudi("diff", path, first, second, "-o", "json")[1]) == found
    assert json.loads(hudi("diff", path, second, "-o", "json")[1]) == []
    _, out, err = hudi("diff", path, first, "-n", "1", "-o", "json")
    assert (len(json.loads(out)), "2 more" in err) == (1, True)
    assert hudi("diff", path, "1999-01-01")[0] == 1


def test_a_query_with_one_name_twice_keeps_both_columns(hudi, path):
    query = 'select 1 as a, 2 as a, 3 as a_1, 4 as "é"'
    assert json.loads(hudi("sql", path, query, "-o", "ndjson")[1]) == {"a": 1, "a_2": 2, "a_1": 3, "é": 4}
    assert hudi("sql", path, query, "-o", "csv")[1] == "a,a_2,a_1,é\n1,2,3,4\n"


def test_values_of_a_query_that_json_has_no_form_for_are_text(hudi, path):
    query = "select '00000000-0000-0000-0000-000000000001'::uuid u, timestamp_ns '2020-01-01 00:00:00.000000001' t"
    row = json.loads(hudi("sql", path, query, "-o", "ndjson")[1])
    assert row["u"] == "00000000-0000-0000-0000-000000000001"
    assert row["t"].endswith("00:00:00.000000001")
