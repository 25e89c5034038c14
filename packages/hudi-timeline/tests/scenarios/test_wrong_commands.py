"""Sixty wrong calls of the command: one line of ours each, the exit code as documented, and nothing is written.

Exit code 1: the table or the request is at fault; 2: the command line is.
"""

import shutil
import sys

import pytest
from bad_input import content, make

from hudi_timeline import HudiTable
from hudi_timeline.cli.main import main

TABLE, MISSING, NEW, FILE = "{table}", "{root}/missing", "{root}/new", "{root}/out.csv"

REFUSED = [
    # tables and moments
    ("show", MISSING), ("schema", MISSING), ("count", MISSING), ("verify", MISSING), ("history", MISSING),
    ("show", "{root}"), ("show", "{root}/rows.csv"), ("show", "no-such-scheme://x/y"),
    ("head", TABLE, "--as-of", "last tuesday"), ("count", TABLE, "--as-of", "1999-01-01"),
    ("diff", TABLE, "yesterday"), ("diff", TABLE, "1999-01-01"), ("diff", MISSING, "2024-01-01"),
    ("commit", "showfiles", TABLE, "20240101000000000"),
    # rows
    ("head", TABLE, "-c", "nmae"), ("head", TABLE, "-w", "fare <"), ("head", TABLE, "-w", "fere < 3"),
    ("count", TABLE, "-w", "upper(city) = 'X'"),
    ("sql", TABLE, "select nmae from t"), ("sql", TABLE, "selekt 1"), ("sql", TABLE, ""), ("sql", MISSING, "select 1"),
    ("sql", TABLE, "select * from trips"), ("sql", TABLE, "delete from t"),
    # files
    ("export", TABLE, "{root}/rows.csv"), ("export", TABLE, FILE), ("export", TABLE, FILE, "-c", "nmae"),
    ("export", TABLE, FILE, "-c", "id", "-w", "id ="), ("export", MISSING, FILE),
    ("export", TABLE, FILE, "-c", "id", "--as-of", "1999-01-01"),
    ("import", MISSING, NEW, "-k", "id"), ("import", "{root}/rows.csv", NEW, "-k", "nmae"),
    ("import", "{root}/rows.csv", TABLE, "-k", "id"), ("import", TABLE, NEW, "-k", "id"),
    ("import", "{root}/rows.csv", NEW, "-k", "id", "-w", "id ="),
    # columns
    ("alter", "add", TABLE, "id", "string"), ("alter", "add", TABLE, "note", "text"),
    ("alter", "add", TABLE, "note", "string", "--after", "nmae"), ("alter", "add", TABLE, "a b", "string"),
    ("alter", "rename", TABLE, "nmae", "name"), ("alter", "rename", TABLE, "fare", "id"),
    ("alter", "drop", TABLE, "id"), ("alter", "drop", TABLE, "nmae"), ("alter", "drop", TABLE, "city"),
    ("alter", "widen", TABLE, "fare", "int"), ("alter", "widen", TABLE, "n", "date"),
    ("alter", "move", TABLE, "nmae", "--first"), ("alter", "move", TABLE, "fare", "--after", "fare"),
    ("alter", "add", MISSING, "note", "string"),
    # services
    ("compact", "schedule", TABLE), ("compact", "run", TABLE), ("compact", "run", "{logs}", "20240101000000000"),
    ("compact", "log", TABLE), ("compact", "log", "{logs}", "20240101000000000"),
    ("compact", "unschedule", "{logs}", "20240101000000000"), ("compact", "show", "{logs}", "20240101000000000"),
    ("compact", "validate", "{logs}", "20240101000000000"),
    ("compact", "run", "{logs}", "--option", "hoodie.compact.inline.max.delta.comits=1"),
    ("index", "schedule", TABLE, "recrd_index"), ("index", "run", TABLE, "bloom"), ("index", "drop", TABLE, "stats"),
    ("buckets", "show", TABLE), ("buckets", "resize", TABLE, "4"), ("buckets", "resize", "{logs}", "4"),
    ("clean", TABLE, "--option", "hoodie.cleaner.commits.retained=few"),
    ("clean", TABLE, "--option", "hoodie.clean.comits.retained=3"), ("archive", TABLE, "--option", "nonsense=1"),
    ("savepoint", "create", TABLE, "20240101000000000"), ("savepoint", "delete", TABLE, "20240101000000000"),
    ("rollback", TABLE, "20240101000000000", "-y"), ("restore", TABLE, "20240101000000000", "-y"),
    ("restore", TABLE, "2024-01-01", "-y"), ("downgrade", TABLE, "--to", "4", "-y"),
    ("upgrade", TABLE, "--to", "9"),
    ("deduplicate", TABLE, "--partition", "../x"), ("check-merge", TABLE, "--merge", "no_such_module:f"),
    ("capsule", MISSING, "--out", "{root}/c.zip"), ("capsule", "open", "{root}/rows.csv", NEW),
    ("head", TABLE, "-c", "id,id"), ("count", TABLE, "--as-of", "2024-02-30"), ("count", TABLE, "--as-of", ""),
    ("count", TABLE, "--where", "tags = 'x'"), ("count", TABLE, "--where", "n = 1; drop table t"),
    ("count", TABLE, "--where", "box.nope = 1"), ("show", "s3://"), ("show", "/dev/null"), ("show", TABLE + "/c0"),
    ("export", TABLE, "{root}/none/out.csv"), ("export", TABLE, "{root}/rows.csv/out.csv", "-c", "id"),
    ("import", "{root}/rows.csv", "{root}/rows.csv", "-k", "id"),
    ("import", "{root}/rows.csv", NEW, "-k", "id", "--option", "hoodie.parquet.max.file.size=-1"),
    ("alter", "add", TABLE, "note", "decimal(99, 2)"), ("alter", "add", TABLE, "note", "list<int>"),
    ("alter", "rename", TABLE, "fare", "fare"), ("alter", "drop", TABLE, "_hoodie_commit_time"),
    ("archive", TABLE, "--option", "hoodie.keep.min.commits=5", "--option", "hoodie.keep.max.commits=3"),
    ("capsule", TABLE, "--out", "{root}/rows.csv"), ("capsule", TABLE, "--out", "{root}/none/c.zip"),
    ("capsule", "open", "{root}/none.zip", NEW), ("forget", TABLE, ""),
    ("lock", "show", TABLE, "--option", "hoodie.write.lock.provider=math:sqrt"),
    ("lock", "show", TABLE, "--option", "hoodie.write.lock.provider=Nope"),
    ("repair", "overwrite-hoodie-props", TABLE, "--new-props-file", "{root}/logs", "-y"),
    ("savepoint", "create", TABLE, "now"), ("upgrade", TABLE, "--to", "99999"), ("clean", TABLE, "--instant", "2024"),
    ("lock", "show", MISSING), ("repair", TABLE, "--only", "nonsense"),
    # what a variable leaves that is not set
    ("show", ""), ("clean", " "), ("repair", "addpartitionmeta", ""), ("capsule", "", "-o", "{root}/c.zip"),
    ("import", "{root}/rows.csv", "", "-k", "id"), ("import", "", NEW, "-k", "id"), ("rollback", TABLE, "", "-y"),
    ("head", TABLE, "-c", ""), ("head", TABLE, "-c", "id,"), ("export", TABLE, FILE, "-c", ""),
    ("index", "run", TABLE, ""),
    # several of what one was given, and turned round
    ("head", TABLE, "-c", "id", "-c", "nmae"), ("import", "{root}/rows.csv", NEW, "-k", "id", "-k", "nmae"),
    ("index", "schedule", TABLE, "files,column_stats"), ("diff", TABLE, "2100-01-01", "2024-01-01"),
    ("upgrade", TABLE, "--to", "5"), ("check-merge", TABLE, "--merge", '{{"nmae": "sum"}}'),
    # files
    ("import", "{root}/latin.csv", NEW, "-k", "id"), ("import", "{root}/header.csv", NEW, "-k", "id"),
    ("import", "{root}/words", NEW, "-k", "id"), ("import", "{root}/words", TABLE, "-k", "id", "--upsert"),
    ("import", "{root}/rows.csv", TABLE, "-k", "v", "--upsert"),
    ("import", "{root}/rows.csv", "{root}/words", "-k", "id"),
    ("export", TABLE, "{root}/folder.csv", "--force", "-c", "id"), ("capsule", TABLE, "-o", "{root}/words", "--force"),
]  # fmt: skip

MISSPELT = [
    ("shwo", TABLE), ("alter", "ad", TABLE, "note", "string"), ("compact", "rn", TABLE), ("index", "list", TABLE),
    ("diff", TABLE), ("export", TABLE), ("sql", TABLE), ("alter", "add", TABLE, "note"), ("import", "{root}/rows.csv"),
    ("export", TABLE, "{root}/out.xlsx"), ("head", TABLE, "--limt", "3"), ("head", TABLE, "--limit", "many"),
    ("diff", TABLE, "2024-01-01", "--limit", "-1"), ("buckets", "resize", "{logs}", "0"),
    ("buckets", "resize", "{logs}", "many"), ("deduplicate", TABLE, "--keep", "newest"), ("show", TABLE, "-o", "xml"),
    ("show", TABLE, "--storage-option", "bad"), ("clean", TABLE, "--option", "bad"), ("index", "schedule", TABLE),
    ("index", "drop", TABLE), ("compact", "unschedule", TABLE), ("restore", TABLE), ("forget", TABLE),
    ("downgrade", TABLE, "--to", "five"), ("verify", TABLE, "--workers", "0"),
    ("repair", "addpartitonmeta", TABLE), ("repair", "dedupe", TABLE), ("repair", TABLE, "{logs}"),
]  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("wrong")
    make(root / "table")
    rows = [{"id": "a", "v": 1}]
    logs = HudiTable.create(str(root / "logs"), rows, table_type="MERGE_ON_READ", record_keys="id")
    logs.upsert(rows)
    logs.upsert(rows)
    (root / "rows.csv").write_text("id,v\na,1\n")
    (root / "latin.csv").write_bytes("id,v\né,1\n".encode("latin-1"))
    (root / "header.csv").write_bytes("id,été\na,1\n".encode("latin-1"))
    (root / "folder.csv").mkdir()
    (root / "words").mkdir()
    (root / "words" / "x.parquet").write_text("words")
    (root / "words" / "._SUCCESS.crc").write_text("")
    shutil.copytree(root, tmp_path_factory.mktemp("before") / "copy")
    return root


def name_of(words):
    return " ".join(w.replace("{", "").replace("}", "") for w in words)


@pytest.mark.parametrize(
    ("words", "code"),
    [(w, 1) for w in REFUSED] + [(w, 2) for w in MISSPELT],
    ids=lambda v: name_of(v) if isinstance(v, tuple) else "",
)
def test_a_wrong_call_is_one_line_with_its_exit_code_and_writes_nothing(
    root, monkeypatch, capsys, words, code
):
    before = content(root)
    monkeypatch.chdir(root)
    monkeypatch.delenv("HUDI_TABLE", raising=False)
    places = {"table": str(root / "table"), "logs": str(root / "logs"), "root": str(root)}
    monkeypatch.setattr(sys, "argv", ["hudi", *(w.format(**places) for w in words)])
    with pytest.raises(SystemExit) as e:
        main()
    out, err = capsys.readouterr()
    assert (e.value.code, out) == (code, ""), err
    assert content(root) == before
    if code == 1:
        assert err.count("\n") == 1, err
        assert "HUDI-E" in err, err
        assert "Remedy" in err, err
    else:
        assert "Error:" in err, err


REMEDIES = {
    ("import", "{root}/rows.csv", TABLE, "-k", "id"): "give another PATH; --upsert",
    ("import", "{root}/rows.csv", TABLE, "-k", "v", "--upsert"): "omit what differs",
    ("import", "{root}/words", NEW, "-k", "id"): "replace the file by a whole one",
    ("import", "{root}/latin.csv", NEW, "-k", "id"): "iconv -f latin1",
    ("savepoint", "create", TABLE, "1999-01-01"): "`hudi commits PATH`",
    ("restore", TABLE, "20240101000000000", "-y"): "`hudi commits PATH`",
    ("rollback", TABLE, "20240101000000000", "-y"): "`hudi timeline PATH`",
    ("upgrade", TABLE, "--to", "5"): "`hudi downgrade PATH`",
    ("diff", TABLE, "2100-01-01", "2024-01-01"): "hudi diff PATH '2024-01-01' '2100-01-01'",
    ("show", "{root}/words"): "it holds other data, such as 'x.parquet'",
    (
        "import",
        "{root}/rows.csv",
        "{root}/words",
        "-k",
        "id",
    ): "something else than a Hudi table: x.parquet, ._SUCCESS.crc",
    ("show", ""): "the variable that was to hold it may not be set",
    ("repair", "addpartitonmeta", TABLE): "Did you mean 'addpartitionmeta'?",
}


@pytest.mark.parametrize(
    ("words", "way"), REMEDIES.items(), ids=lambda v: name_of(v) if isinstance(v, tuple) else ""
)
def test_a_remedy_names_what_the_command_has(root, monkeypatch, capsys, words, way):
    places = {"table": str(root / "table"), "logs": str(root / "logs"), "root": str(root)}
    monkeypatch.setattr(sys, "argv", ["hudi", *(w.format(**places) for w in words)])
    with pytest.raises(SystemExit):
        main()
    assert way in capsys.readouterr().err


def test_there_are_sixty_of_them_and_more():
    assert len({*REFUSED, *MISSPELT}) == len(REFUSED) + len(MISSPELT) >= 60
