"""Commands of one commit, and conversions of tables, from a shell."""

import json
from pathlib import Path

from made_tables import at

from hudi_timeline import HudiTable


def test_commands_of_one_commit_and_of_conversions(hudi, path, tmp_path):
    (row,) = json.loads(hudi("commit", "showpartitions", path, at(2), "-o", "json")[1])[:1]
    assert row["bytes_written"] > 0
    assert json.loads(hudi("commit", "showfiles", path, at(2), "-o", "json")[1])
    assert json.loads(hudi("commit", "record-size", path, "-o", "json")[1])["bytes_per_row"] > 0
    assert hudi("commit", "showfiles", path, at(9))[0] == 1
    properties = tmp_path / "new.properties"
    text = (Path(path) / ".hoodie/hoodie.properties").read_text().replace("COPY_ON_WRITE", "MERGE_ON_READ")
    properties.write_text(text)
    convert = ("repair", "overwrite-hoodie-props", path, "--new-props-file", str(properties))
    assert "+ hoodie.table.type=MERGE_ON_READ" in hudi(*convert, "--dry-run")[1]
    assert HudiTable.open(path).table_type == "COPY_ON_WRITE"
    assert hudi(*convert)[0] == 0
    assert HudiTable.open(path).table_type == "MERGE_ON_READ"
    for name in ("addpartitionmeta", "corrupted-clean-files", "migrate-partition-meta"):
        assert hudi("repair", name, path, "--dry-run")[0] == 0
    assert json.loads(hudi("repair", "show-empty-commit-metadata", path, "-o", "json")[1]) == []
    assert json.loads(hudi("downgrade", path, "-o", "json")[1])["executed"]
    assert "hoodie.table.version=6" in hudi("upgrade", path)[1]
