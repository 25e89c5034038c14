"""The code of the documentation's pages, run as it stands, with what it prints.

A block of Python runs after those before it on its page; `text` below it is what it prints, or, of a block with the
class `refused`, the error that it ends in.  `...` stands for anything, and times, sizes and names that are made up may
be others.  Of a `console` block the commands `hudi` run.
"""

import contextlib
import doctest
import io
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hudi_format.errors import HudiError
from hudi_timeline.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
_FENCE = re.compile(
    r"^```(?: *\{(?P<classes>[^}\n]*)\}|(?P<language>\w+))\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_SAME = doctest.OutputChecker()
_HOW = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# What each run has others of: instants, file ids, write tokens, sizes, seconds.
_OWN = (
    (r"(?<!\d)20\d{15}(?!\d)", "INSTANT"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
    (r"_\d+-\d+-\d+_", "_TOKEN_"),
    (r"\b\d+\.\d+ (s|MB)\b", r"N \1"),
    (r"\b\d{1,3}(,\d{3})+\b", "N"),
    (r"\bprocess \d+", "process N"),
)
_HOME = "/home/me"  # what pages call the current folder
_EXIT = re.compile(r"\s+# exit code (\d+)$")


@dataclass(frozen=True)
class Block:
    line: int
    classes: frozenset[str]
    text: str
    prints: str | None


def blocks(page):
    text = page.read_text()
    found = []
    for match in _FENCE.finditer(text):
        classes = frozenset((match["classes"] or f".{match['language']}").replace(".", " ").split())
        line = text[: match.start()].count("\n") + 2
        if classes == {"text"}:
            if found and found[-1].prints is None:
                last = found.pop()
                found.append(Block(last.line, last.classes, last.text, match["text"]))
        else:
            found.append(Block(line, classes, match["text"], None))
    return found


def pages(*, spark):
    """Pages with code that runs, with or without a session of Spark."""
    found = []
    for page in sorted(DOCS.rglob("*.md")):
        run = [b for b in blocks(page) if b.classes & {"python", "console"}]
        if run and any("spark" in b.classes for b in run) == spark:
            found.append(page)
    return found


def general(text):
    """A text without what each run has others of, and without the frames of tables."""
    text = text.replace(str(Path.cwd()), _HOME)
    for pattern, name in _OWN:
        text = re.sub(pattern, name, text)
    return re.sub(r"[━─┏┓┗┛┡┩┳┻╇┴└┘├┤┼]+", "", text)


def same(page, block, wanted, got):
    if wanted is not None:
        fits = _SAME.check_output(general(wanted), general(got), _HOW)
        assert fits, f"{page.name}:{block.line} printed:\n{got}\nnot:\n{wanted}"


def run_command(line):
    """A command's exit code and what it printed, errors too."""
    printed = io.StringIO()
    arguments = sys.argv
    sys.argv = shlex.split(line)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main()
        code = 0
    except SystemExit as e:
        code = e.code or 0
    finally:
        sys.argv = arguments
    return code, printed.getvalue()


def run_console(page, block):
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, wanted = part.partition("\n")
        if not line.startswith("hudi "):
            continue  # installations and clusters
        expected = _EXIT.search(line)
        code, printed = run_command(_EXIT.sub("", line))
        assert code == int(expected[1] if expected else 0), f"{page.name}:{block.line} {line}:\n{printed}"
        same(page, block, wanted if wanted.strip() else None, printed)


def run_python(page, block, names):
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
    printed = io.StringIO()
    if "refused" in block.classes:
        kind = Exception if "by-spark" in block.classes else HudiError
        with pytest.raises(kind) as error, contextlib.redirect_stdout(printed):
            exec(code, names)
        same(page, block, block.prints, f"{type(error.value).__name__}: {error.value}\n")
        return
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    same(page, block, block.prints, printed.getvalue())


def run(page, names):
    done = 0
    for block in blocks(page):
        if "elsewhere" in block.classes:
            compile(block.text, str(page), "exec")  # needs what is not here
        elif "python" in block.classes:
            run_python(page, block, names)
            done += 1
        elif "console" in block.classes:
            run_console(page, block)
    return done


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("page", pages(spark=False), ids=lambda p: p.stem)
def test_a_page_s_code_does_what_it_says(page, folder):
    run(page, {"__name__": "__main__"})


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    import hudi_spark

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = (
        builder.config("spark.sql.shuffle.partitions", "1")
        .config("spark.default.parallelism", "1")
        .config("spark.sql.session.timeZone", "UTC")
    )
    session = hudi_spark.configure(builder).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    hudi_spark.disable()
    session.stop()


# Of the pages on Spark that of migrations takes longest; packages/hudi-spark/tests/scenarios/test_migration.py does
# the same in CI, and the long form runs the page.
ON_SPARK = [
    pytest.param(p, marks=pytest.mark.slow) if p.stem == "migration" else p for p in pages(spark=True)
]


@pytest.mark.spark
@pytest.mark.parametrize("page", ON_SPARK, ids=lambda p: p.stem)
def test_a_page_s_code_on_spark_does_what_it_says(page, folder, spark):
    assert run(page, {"__name__": "__main__", "spark": spark}) > 3


def test_there_are_pages_with_code():
    assert len(pages(spark=False)) >= 3
    assert len(pages(spark=True)) >= 2


def test_what_is_printed_is_compared(tmp_path):
    page = tmp_path / "wrong.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match="printed"):
        run(page, {})
    page.write_text("``` { .python .refused }\n1 + 1\n```\n")
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        run(page, {})
    page.write_text("```console\n$ hudi show nothing-here\n```\n")
    with pytest.raises(AssertionError, match=r"wrong\.md"):
        run(page, {})
