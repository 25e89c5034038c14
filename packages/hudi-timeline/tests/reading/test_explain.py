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
    text = str(explanation)
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
