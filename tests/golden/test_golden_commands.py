"""Every command on golden tables, with right and wrong arguments: an exit code and text, and never a traceback."""

import sys

import pytest
import typer
from golden_tables import golden

from hudi_timeline.cli import main as cli
from hudi_timeline.cli.verify import FINDINGS
from hudi_timeline.table import HudiTable

TABLES = [t for version in ("v5", "v6", "v8", "v9") for t in golden(version)]
WRONG, NEVER = "19990101000000000", "no_such"


def names_of(group, prefix=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from names_of(command, (*prefix, name))
        else:
            yield (*prefix, name)


UNNAMED = (FINDINGS,)
WHOLE = typer.main.get_command(cli.app)
COMMANDS = set(names_of(WHOLE))


def _first(rows, column, other):
    values = [v for v in rows.column(column).to_pylist() if v] if column in rows.column_names else []
    return str(values[0]) if values else other


def calls_of(table, folder):
    """Calls as a person would make them who looks at the table, then works on it; wrong ones among them."""
    t = table.uri
    history = table.history().column("instant").to_pylist()
    newest, oldest = (history[0], history[-1]) if history else (WRONG, WRONG)
    column = table.schema.names[0]
    rows = table.read(meta_columns=True).head(1)
    key = _first(rows, "_hoodie_record_key", NEVER)
    partition = _first(rows, "_hoodie_partition_path", NEVER)
    file = str(folder / "props")
    (folder / "props").write_bytes(table.storage.read(".hoodie/hoodie.properties"))
    out = folder / "out"
    yield from [
        ("show", t), ("show", t, "-o", "json"), ("schema", t), ("schema", t, "-o", "csv"), ("partitions", t),
        ("files", t, "--all"), ("files", t, "-n", "1", "-o", "ndjson"), ("timeline", t), ("timeline", t, "--rollbacks"),
        ("timeline", t, "--incomplete"), ("commits", t), ("commits", t, "--wide"), ("history", t, "-n", "2"),
        ("history", t, "--follow", "-o", "ndjson"), ("history", t, "--follow"), ("count", t),
        ("count", t, "-w", f"{column} is not null"), ("count", t, "-w", f"{NEVER} > 1"),
        ("count", t, "--as-of", oldest), ("count", t, "--as-of", WRONG), ("head", t),
        ("head", t, "--meta", "-o", "json"), ("head", t, "-c", column),
        ("head", t, "-c", NEVER), ("head", t, "-w", f"{column} = "), ("head", t, "--as-of", newest),
        ("sql", t, "select count(*) from t"), ("sql", t, "select * from t limit 2", "--meta", "-o", "ndjson"),
        ("sql", t, f"select {NEVER} from t"), ("sql", t, ""), ("export", t, f"{out}.parquet"),
        ("export", t, f"{out}.ndjson", "--meta"), ("export", t, f"{out}.csv"),
        ("export", t, f"{out}.arrow", "--no-such"),
        ("export", t, f"{out}.arrow"), ("export", t, f"{out}.parquet"), ("export", t, f"{out}.parquet", "--force"),
        ("export", t, f"{out}.csv", "-c", NEVER, "--force"), ("diff", t, oldest), ("diff", t, oldest, newest),
        ("diff", t, WRONG), ("diff", t, NEVER), ("key-history", t, key), ("key-history", t, NEVER),
        ("key-history", t, key, "--partition", partition), ("key-history", t, key, "--partition", NEVER),
        ("duplicates", t), ("duplicates", t, "--across-partitions"), ("duplicates", t, "--partition", NEVER),
        ("doctor", t), ("doctor", t, "-o", "json"), ("verify", t), ("verify", t, "--deep", "--json"),
        ("check-merge", t, "--made-up", "--deletes", "--cases", "20"),
        ("check-merge", t, "--merge", f"{NEVER}:f"), ("lock", "show", t), ("lock", "break", t), ("buckets", "show", t),
        ("commit", "showpartitions", t, newest), ("commit", "showfiles", t, newest), ("commit", "showfiles", t, WRONG),
        ("commit", "showpartitions", t, WRONG), ("commit", "record-size", t), ("commit", "record-size", t, WRONG),
        ("compact", "status", t), ("compact", "show", t), ("compact", "show", t, WRONG),
        ("compact", "validate", t, WRONG), ("config", "list"), ("config", "list", "--all", "-o", "ndjson"),
        ("config", "search", "bloom"), ("config", "search", NEVER), ("config", "explain", NEVER),
        ("config", "explain", "hoodie.table.name", "hoodie.cleaner.commits.retained=3"),
        ("capsule", t, "--out", f"{out}.zip"), ("capsule", "open", f"{out}.zip", f"{out}-opened"),
        ("capsule", "open", file, f"{out}-none"), ("import", t, f"{out}-imported", "-k", column),
        ("import", f"{out}.parquet", f"{out}-imported", "-k", NEVER), ("import", f"{out}.parquet", t, "-k", column),
        ("repair", "show-empty-commit-metadata", t), ("savepoint", "list", t),
        ("repair", t), ("repair", t, "--only", NEVER), ("repair", "deduplicate", t, "--dry-run"),
        ("repair", "overwrite-hoodie-props", t, "--new-props-file", f"{file}-none"),
    ]  # fmt: skip
    # What changes the table: first what it would do, then it, from what keeps most to what keeps least.
    yield from [
        ("clean", t, "--dry-run"), ("archive", t, "--dry-run"), ("deduplicate", t, "--dry-run"),
        ("deduplicate", t, "--plan"), ("restore", t, oldest, "--dry-run"), ("rollback", t, "--dry-run"),
        ("rollback", t, newest, "--plan"), ("rollback", t, WRONG, "-y"), ("restore", t, WRONG, "-y"),
        ("upgrade", t, "--dry-run"), ("upgrade", t, "--to", "99"), ("downgrade", t, "--dry-run"),
        ("forget", t, key), ("forget", t, NEVER), ("buckets", "resize", t, "4", "--dry-run"),
        ("index", "schedule", t, "column_stats", "--dry-run"), ("index", "run", t, NEVER),
        ("index", "drop", t, "bloom_filters", "--dry-run"), ("index", "rebuild", t),
        ("repair", "overwrite-hoodie-props", t, "--new-props-file", file), ("savepoint", "create", t, WRONG),
        ("savepoint", "create", t), ("savepoint", "delete", t, WRONG), ("savepoint", "delete", t, newest, "-y"),
        ("compact", "schedule", t), ("compact", "unschedule", t, WRONG), ("compact", "repair", t, WRONG),
        ("compact", "log", t), ("compact", "run", t), ("compact", "run", t, WRONG), ("buckets", "resize", t, "4"),
        ("index", "schedule", t, "column_stats"), ("index", "run", t), ("index", "run", t, "files"),
        ("index", "drop", t, "column_stats"), ("deduplicate", t), ("clean", t), ("archive", t),
        ("alter", "add", t, "added", "string"), ("alter", "add", t, column, "string"),
        ("alter", "rename", t, "added", "named"), ("alter", "rename", t, NEVER, "x"),
        ("alter", "move", t, "named", "--first"),
        ("alter", "widen", t, column, "long"), ("alter", "widen", t, NEVER, "long"), ("alter", "drop", t, "named"),
        ("alter", "drop", t, NEVER), *((*("repair", name, t),) for _, name in sorted(repairs())),
        ("forget", t, key, "--execute"), ("repair", t, "--execute"), ("downgrade", t, "-y"), ("upgrade", t),
        ("rollback", t, "-y"), ("restore", t, oldest, "-y"),
    ]  # fmt: skip


def name_of(words):
    """The command of a call; a group may have one that needs no name."""
    whole = next((words[:n] for n in (2, 1) if words[:n] in COMMANDS), None)
    return whole or (
        words[0],
        next(n for _, n in sorted(c for c in COMMANDS if c[0] == words[0]) if n in UNNAMED),
    )


def repairs():
    """Repairs by name whose arguments are all optional but the table."""
    own = {FINDINGS, "deduplicate", "overwrite-hoodie-props", "show-empty-commit-metadata"}
    return {name for name in COMMANDS if name[0] == "repair" and not own & set(name)}


@pytest.mark.sampled(200)
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_no_command_ends_in_a_traceback(table, tmp_path, monkeypatch, capsys):
    def end(_):
        raise KeyboardInterrupt  # as a person ends `history --follow`

    monkeypatch.setattr(cli, "sleep", end)
    monkeypatch.delenv(cli.TRACEBACK, raising=False)
    (tmp_path / "files").mkdir()
    opened = HudiTable.open(str(table.unpack(tmp_path)))
    earliest = min(opened.history().column("instant").to_pylist(), default="")
    called = set()
    for words in calls_of(opened, tmp_path / "files"):
        called.add(name_of(words))
        monkeypatch.setattr(sys, "argv", ["hudi", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        code = ended.value.code or 0
        assert code in ((130,) if "--follow" in words else (0, 1, 2)), (words, code, err)
        assert "Traceback" not in out + err, words
        # A table without commits, or with one of a bootstrap, has a state at any time.
        at_any_time = "--as-of" in words and earliest < WRONG
        if (WRONG in words or NEVER in words) and not at_any_time:
            assert code or words[0] in ("config", "key-history", "duplicates", "forget", "diff"), words
        if code == 1 and "HUDI-E" in err and words[0] != "forget":  # which lists what it did before
            assert err.rstrip("\n").count("\n") == 0, (words, err)
    assert called == COMMANDS
