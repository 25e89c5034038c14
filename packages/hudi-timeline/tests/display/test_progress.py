"""Progress of writes and reads: shown where it was asked for, and silent elsewhere."""

import io
import sys
import types

import pytest
from bad_input import make, rows
from rich.console import Console

from hudi_format.errors import InvalidOptionError
from hudi_timeline import HudiTable
from hudi_timeline.display import progress


@pytest.fixture
def table(tmp_path):
    make(tmp_path / "t")
    return HudiTable.open(str(tmp_path / "t"))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("switch", "asked", "terminal", "shown"),
    [
        (None, "auto", False, False),
        (None, "auto", True, True),
        ("true", "auto", False, True),
        ("false", "auto", True, False),
        ("false", "true", False, True),
        ("true", "false", True, False),
        ("", "auto", True, True),
    ],
)
def test_a_switch_decides_whether_progress_is_shown(monkeypatch, switch, asked, terminal, shown):
    monkeypatch.delenv(progress.SWITCH, raising=False)
    if switch is not None:
        monkeypatch.setenv(progress.SWITCH, switch)
    monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
    assert progress.switched(asked) is shown
    assert type(progress.reporter("x", asked)) is (progress.ProgressView if shown else progress.Reporter)


def test_a_wrong_switch_is_refused(monkeypatch):
    monkeypatch.setenv(progress.SWITCH, "perhaps")
    with pytest.raises(InvalidOptionError, match="use auto, true or false"):
        progress.reporter("x")


def test_a_write_names_its_phases_and_leaves_nothing_behind(monkeypatch, table):
    out = io.StringIO()

    def reporter(what, asked="auto"):
        assert asked == "true"
        return progress.ProgressView(what, Console(file=out, force_terminal=True, width=100), delay_s=0)

    told = []
    phase, advance = progress.ProgressView.phase, progress.ProgressView.advance
    monkeypatch.setattr(
        progress.ProgressView, "phase", lambda self, name: (told.append(name), phase(self, name))
    )
    monkeypatch.setattr(
        progress.ProgressView,
        "advance",
        lambda self, done, total: (told.append((done, total)), advance(self, done, total)),
    )
    monkeypatch.setattr("hudi_timeline.writing.operation.reporter", reporter)
    result = table.upsert(rows("a", "b", "x"), options={"hudi.progress": True})
    assert [t for t in told if t in result.timings] == [t for t in told if isinstance(t, str)]
    assert (2, 2) in told, "both files"
    assert out.getvalue().endswith("\x1b[2K") or out.getvalue() == "", "the line was taken away"


def test_nothing_is_printed_where_there_is_no_terminal(capfd, table, monkeypatch):
    monkeypatch.delenv(progress.SWITCH, raising=False)
    table.upsert(rows("a"))
    assert table.read().to_arrow().num_rows == 4
    assert capfd.readouterr() == ("", "")


class Handle:
    """A cell's output, as IPython hands it out."""

    def __init__(self, shown):
        self.shown = shown

    def update(self, what, raw=False):
        self.shown.append(what)


@pytest.fixture
def notebook(monkeypatch):
    """What a cell of a notebook shows, picture by picture."""
    shown = []
    screen = types.ModuleType("IPython.display")
    screen.HTML = str

    def display(what, display_id):
        shown.append(what)
        return Handle(shown)

    screen.display = display
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", screen)
    monkeypatch.delenv(progress.SWITCH, raising=False)
    monkeypatch.setattr(progress, "NOTEBOOK_PAUSE_S", 0)
    return shown


def test_a_notebook_shows_html_and_is_left_empty(notebook):
    assert progress.switched()
    with progress.reporter("upsert <t>") as view:
        assert isinstance(view, progress.NotebookView)
        view._show()  # what its timer does after half a second
        view.phase("write")
        view.advance(1, 4)
    assert "upsert &lt;t&gt;" in notebook[0]
    assert "upsert &lt;t&gt;: write" in notebook[1]
    assert "value='1' max='4'" in notebook[2]
    assert notebook[-1] == {}


def test_a_short_call_shows_nothing_in_a_notebook(notebook, table):
    table.upsert(rows("a"))
    assert notebook == []
