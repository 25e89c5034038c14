"""The pages of the documentation site that are made of the code, and what the others say of it."""

import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from hudi_format import errors as hudi_errors
from hudi_format.errors import HudiError
from hudi_timeline.options import registry
from hudi_timeline.verify.findings import KINDS
from pages import api, commands, errors, extras, findings, links, man, options

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
READMES = [ROOT / "README.md", *sorted(ROOT.glob("packages/*/README.md"))]


def test_each_error_has_a_page_with_advice():
    codes = {c.code for c in vars(hudi_errors).values() if isinstance(c, type) and issubclass(c, HudiError)}
    assert set(errors.advice()) == codes
    made = errors.pages()
    assert set(made) == {"errors/index.md", *(f"errors/{c}.md" for c in codes)}
    for code in codes:
        assert f"[{code}]({code}.md)" in made["errors/index.md"]
        assert errors.advice()[code].strip() in made[f"errors/{code}.md"]


def test_messages_of_the_code_are_found():
    said = errors.messages()
    assert any("no release of Apache Hudi knows the option" in m.text for m in said["UnknownOptionError"])
    assert all(said[c.__name__] for c in errors.classes() if c is not HudiError)


def test_each_option_is_on_one_page():
    effect, refused, without = options.reference(), options.refused(), options.without_effect()
    for key, option in registry.known_options().items():
        heading = f"### `{key}` {{"
        row, item = f"| `{key}` |", f"- `{key}`\n"
        found = [heading in effect, row in refused, item in without or without.endswith(item)]
        assert sum(found) == 1, (key, found)
        assert found[0] == bool(option.doc), key


def test_each_command_is_on_its_page():
    page = commands.reference()
    words = list(commands.commands())
    assert ("compact", "run") in words
    assert len(words) > 30
    for command in words:
        assert f"# hudi {' '.join(command)}\n" in page


def test_the_manual_page_is_the_one_of_the_commands():
    page = man.page()
    assert man.PAGE.read_text(encoding="utf-8") == page, "run: python tools/pages/man.py"
    for command in commands.commands():
        assert f".SS hudi {' '.join(command)} ".replace("-", "\\-") in page
    requests = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".I", ".nf", ".fi"}


def test_each_finding_is_on_its_page():
    assert all(f"| `{code}` |" in findings.reference() for code in KINDS)


def test_each_extra_has_a_purpose_and_the_packages_above_have_those_below():
    found = extras.extras()
    assert set(found) == set(extras.FOR)
    for name, of in found.items():
        assert {"hudi-timeline", "hudi-spark"} <= set(of), name
        assert f"| `{name}` |" in extras.table()
    assert extras.MARK in (ROOT / "docs" / "install.md").read_text()


@pytest.mark.parametrize("package", links.PACKAGES)
def test_each_public_name_is_on_its_package_s_page(package):
    import importlib

    module = importlib.import_module(package.replace("-", "_"))
    known = {name for name in vars(hudi_errors) if not name.startswith("_")}
    assert set(api.public(package)) == set(module.__all__) - known - {"__version__"}


def test_links_of_a_document_become_links_of_the_site():
    def of(text, page):
        return links.of_site(text, page)

    assert of("[a](../../benchmarks/results/spikes.md)", "guide/x.md") == "[a](../benchmarks/spikes.md)"
    assert of("[a](../packages/hudi-format)", "which.md") == "[a](packages/hudi-format.md)"
    assert of("[a](../hudi-index#part)", "packages/hudi-format.md") == "[a](hudi-index.md#part)"
    assert of("[a](decisions)", "architecture.md") == "[a](decisions/README.md)"
    assert of("[a](../noxfile.py)", "x.md") == "a", "what the site does not show"
    for left in (
        "[a](https://hudi.apache.org)",
        "[a](#part)",
        "[a](nothing.md)",
        "```\n[a](../noxfile.py)\n```",
    ):
        assert of(left, "x.md") == left


def test_each_page_of_the_site_s_navigation_is_there():
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", lambda loader, suffix, node: suffix)
    nav = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)["nav"]
    named = set(re.findall(r"'([\w/.-]+\.md)'", repr(nav)))
    made = {"reference/options.md", "reference/options-refused.md", "reference/options-without-effect.md",
            "reference/command-line.md", "reference/findings.md", *api.pages(), *errors.pages(),
            *links.mirrored().values()}  # fmt: skip
    notebooks = {f"notebooks/{p.stem}.md" for p in (ROOT / "docs" / "notebooks").glob("*.ipynb")}
    assert len(notebooks) == 2
    for page in named:
        assert page in made | notebooks or (ROOT / "docs" / page).is_file(), page


_OPTION = re.compile(
    r"(?<![\w./:-])(?:hoodie\.[a-z]|hudi\.(?:write|read|quarantine|streaming)\.)[\w.]++(?![{*])"
)
# They speak of what other releases of Apache Hudi have, too.
_OF_OTHERS = ("docs/differences.md", "docs/decisions/")
# A slip that the tutorial makes on purpose, and names that are no options: a file, and an Avro name.
_NO_OPTIONS = {"hoodie.upsert.paralelism", "hoodie.properties", "hoodie.orders"}


def options_in(text):
    return {name.rstrip(".") for name in _OPTION.findall(text)} - _NO_OPTIONS


@cache
def names_in_the_code():
    """Options that have no declaration, such as those of streams, and properties of tables."""
    sources = (ROOT / "packages").glob("*/src/**/*.py")
    return set(re.findall(r"\"(h(?:oodie|udi)\.[\w.]+)\"", "\n".join(p.read_text() for p in sources)))


SPEAKING_OF_OPTIONS = [
    d for d in (*DOCS, *READMES, errors.ADVICE) if not str(d.relative_to(ROOT)).startswith(_OF_OTHERS)
]


@pytest.mark.parametrize("document", SPEAKING_OF_OPTIONS, ids=lambda d: str(d.relative_to(ROOT)))
def test_each_option_that_a_document_names_is_known(document):
    for name in options_in(document.read_text()):
        assert registry.main_name(name) or name in names_in_the_code(), name


def test_options_are_found_in_documents():
    text = "`hoodie.table.name`, hoodie.nonsense.x; hoodie.cleaner.* `hudi.write.rules`. hoodie.properties"
    assert options_in(text) == {"hoodie.table.name", "hoodie.nonsense.x", "hudi.write.rules"}


@pytest.mark.parametrize("document", [*DOCS, *READMES, errors.ADVICE], ids=lambda d: str(d.relative_to(ROOT)))
def test_each_command_that_a_document_names_is_there(document):
    known = set(commands.commands())
    for words in re.findall(
        r"(?:`|^\$ )hudi ((?:[a-z]+[a-z-]*(?: |`|$))+)", document.read_text(), re.MULTILINE
    ):
        parts = tuple(words.replace("`", "").split())
        assert any(parts[:n] in known for n in (1, 2)), f"hudi {words}"
        first = parts[:1]
        if len(parts) > 1 and any(len(k) > 1 and k[:1] == first for k in known) and first != ("repair",):
            assert parts[:2] in known, f"hudi {words}"
