"""Explanations of scans: every file, and why."""

import pyarrow.compute as pc
from made_tables import at, file_id


def row(id, v=0, p="a", **more):
    return {"id": id, "p": p, "v": v, "note": f"n{v}", **more}


def test_an_explanation_names_every_file_and_why(made):
    made.base_file(at(7), "a", file_id(7), [row("7")])
    made.commit(at(3), {}, replaced={"a": (file_id(1),)})
    explanation = made.open().read(filter="p = 'a' and v > 1").explain()
    reasons = {
        (r["partition"], r["path"].rpartition("/")[2][:8], r["path"][-25:-8]): (r["read"], r["reason"])
        for r in explanation.files.to_pylist()
    }
    by_group = {(p, g, i): v for (p, g, i), v in reasons.items()}
    assert len(by_group) == 5
    text = str(made.open().read(filter="p = 'a' and v > 1").explain(verbose=True))
    assert "reads 1 of 5 files" in text
    for words in (
        "the newest file of its group",
        "an older version",
        "not completed",
        "replaced at",
        "its partition",
    ):
        assert words in text
    assert explanation.files.filter(pc.field("read")).column("row_groups").to_pylist() == [1]


def test_an_explanation_counts_row_groups(made):
    files = made.open().read(filter="v = 6").explain().files
    (b,) = [r for r in files.to_pylist() if r["partition"] == "b"]
    assert (b["row_groups"], b["row_groups_read"]) == (2, 1)
    skipped = [r for r in files.to_pylist() if r["reason"].startswith("no row group")]
    assert [(r["row_groups"], r["row_groups_read"]) for r in skipped] == [(1, 0)]


def test_older_versions_are_one_line_unless_each_is_asked_for(made):
    for n in range(4, 12):
        made.commit(at(n), {("a", file_id(1)): [row("1", n)]})
    short, whole = made.open().read().explain(), made.open().read().explain(verbose=True)
    assert short.files.equals(whole.files)
    older = short.files.filter(pc.field("older"))
    assert older.num_rows >= 8
    assert not any(older.column("read").to_pylist())
    assert all("older" in reason for reason in older.column("reason").to_pylist())
    for text in (str(short), short._repr_html_()):
        assert f"{older.num_rows} older versions of files" in text
        assert not any(path in text for path in older.column("path").to_pylist())
        assert all(r["path"] in text for r in short.files.to_pylist() if not r["older"])
    for text in (str(whole), whole._repr_html_()):
        assert "older versions of files" not in text
        assert all(path in text for path in older.column("path").to_pylist())
    assert len(str(short).splitlines()) == short.files.num_rows - older.num_rows + 3
