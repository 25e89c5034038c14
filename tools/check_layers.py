"""The order of packages and rooms: imports go leftward between packages, and downward between the folders of one.

    hudi_format <- hudi_index <- hudi_timeline <- hudi_spark, and pyspark only in the last.

Read from the sources, so that Cython modules and indented imports count too.  Also: how many modules a room holds, that
a module has one subject and is no sliver, that `__init__.py` holds names only, that a name tells one module, and one
class, from another, that a module has its test at the mirrored place, that an option is declared once, and that READMEs
and examples import the roots of packages only.  What is left out stands below, or in tested_elsewhere.toml, each with
its reason.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ORDER = ("hudi_format", "hudi_index", "hudi_timeline", "hudi_spark")

# The folders and top modules of each package, floor by floor: a room imports from floors below its own only.
FLOORS: dict[str, tuple[set[str], ...]] = {
    "hudi_format": (
        {"errors", "model", "fork_safe", "_commit_json"},
        {"_lazy"},
        {"arrow", "file_names", "_checks", "commit_json"},
        {"storage", "properties"},
        {"keygen", "partition_metadata"},
        {"schema"},
        {"avro"},
        {"parquet"},
        {"hfile"},
        {"log"},
        {"merge"},
        {"file_slice", "inspect"},
        {"__main__"},
    ),
    "hudi_index": (
        {"hashing"},
        {"bloom", "bucket"},
        {"consistent_hashing", "extendible_hashing"},
        {"metadata_table", "key_ranges"},
        {"record_index", "metadata_footers"},
        {"custom_index"},
        {"lookup"},
        {"tagging"},
    ),
    "hudi_timeline": (
        {"table_version"},
        {"options"},
        {"concurrency", "display"},
        {"table_config"},
        {"timeline", "metadata_config"},
        {"feature_gate"},
        {"file_system_view"},
        {"metadata_table"},
        {"custom_index"},
        {"reading", "transaction"},
        {"services", "validation", "bug_capsule", "inspector"},
        {"writing", "verify"},
        {"keys"},
        {"table"},
        {"one_call"},
        {"cli", "testing"},
        {"__main__"},
    ),
    "hudi_spark": (
        {"types", "runtime"},
        {"functions", "reading", "refused_sql"},
        {"writing", "streaming"},
        {"patches", "datasource"},
        {"session"},
    ),
}
# (room, what it imports): why it may.
UPWARD: dict[tuple[str, str], str] = {}

LEAST_LINES, MOST_LINES = 60, 600
MOST_AT_THE_TOP, MOST_IN_A_FOLDER = 8, 20
# Modules of more lines: how many, and why they are one.
LONGER = {
    "hudi_timeline/table.py": (
        974,
        "one class without mixins (test_table.py), whose methods are one call each",
    ),
}
# Modules of fewer lines: why they are modules of their own.
SMALL = {
    "hudi_format/commit_json.py": "the door of a compiled module, as decode.py and block.py are of larger ones",
    "hudi_format/partition_metadata.py": "one file of the format, as table_config is another",
    "hudi_format/schema/meta_fields.py": "the names of Apache Hudi's meta fields, which 40 modules import",
    "hudi_timeline/concurrency/running_call.py": "used by heartbeats and by locks; knows neither",
    "hudi_timeline/metadata_table/bloom_footers.py": "of BLOOM's look-ups, as record_index is of another index's",
    "hudi_timeline/options/unsupported.py": "refuses options for every parser; none of them is below the others",
    "hudi_timeline/writing/workers/null_elements.py": "found by both writers of base files, and told by the operation",
    "hudi_timeline/writing/reproducible.py": "what a seed changes in a write; its neighbours are steps of any write",
    "hudi_spark/reading/read_tasks.py": "groups tasks for the reader, for streams and for the data source alike",
    "hudi_spark/runtime/helper_process.py": "of the data source's processes, which nothing else runs in",
}
# Names that several rooms have, because each room has one: a stranger looks in the room first.
COMMON_STEMS = {"reader", "writer", "protocol", "errors", "block", "encoder", "verify"}

# Modules whose tests are not at the mirrored place, and the file that covers each.
TESTED_ELSEWHERE = "tools/tested_elsewhere.toml"

# At any indentation: an import moved into a function is still an import.
IMPORT = re.compile(
    r"^\s*(?:from|c?import)\s+(hudi_\w+|pyspark\w*)((?:\.\w+)*)(?: import ([\w, ]+))?", re.MULTILINE
)
# READMEs and examples: names of package roots are the public ones; these rooms are public as a whole.
PUBLIC_ROOMS = {"hudi_timeline.testing", "hudi_spark.functions"}
DOCUMENTS = ("README.md", "packages/*/README.md", "docs/**/*.md", "examples/*.py")
# Benchmarks and tools: what a root names comes from the root.  Beside it they import the room that they measure, make
# to fail, print in the documentation or compare with Apache Hudi; fuzz targets attack one parser each, and are free.
PROGRAMS = ("benchmarks/**/*.py", "tools/**/*.py")
DEEP = re.compile(r"^(?:>>> )?\s*(?:from|import) (hudi_\w+(?:\.\w+)+)", re.MULTILINE)


# Calls in hudi_timeline that few rooms and modules may make: the rule, the calls, and who may, each with its reason.
STORAGE = r"\b\w*(?:storage|_table|metadata|quarantine)\."
CALLS: tuple[tuple[str, str, dict[str, str]], ...] = (
    # What lies below `.hoodie`.
    (
        "a transaction or a service changes the table",
        STORAGE + r"(?:create|publish|touch|delete|delete_dir|make_dir|copy|rename|replace|open_output)\(",
        {
            "table_config.py": "hoodie.properties",
            "metadata_config.py": "takes the metadata table away",
            "metadata_table": "the metadata table, along with the change that it mirrors",
            "concurrency": "heartbeats, markers, locks",
            "transaction": "the timeline",
            "services": "the timeline",
            "verify/repair.py": "the plan of a repair, under the lock",
            "verify/repair_steps.py": "what a repair puts right, under the lock, and its backup",
            "testing": "makes tables in any state",
        },
    ),
    # Folders of data.
    (
        "file_system_view lists partitions",
        r"\b\w*storage\.(?:list|files_below|folders)\(|\bwalk_folders\(",
        {
            "file_system_view": "the view of the table's files",
            "table_config.py": "`.hoodie`",
            "metadata_config.py": "`.hoodie`",
            "feature_gate.py": "folders of `.hoodie`; what lies where no table is",
            "timeline": "folders of timelines and archives",
            "reading/time_travel.py": "folders of archives",
            "concurrency": "folders of heartbeats and markers",
            "transaction": "folders of files to undo, under the lock; the base path",
            "services/cleaning.py": "folders that a cleaning has emptied",
            "services/upgrade.py": "`.hoodie/.aux`",
            "verify": "whatever lies there, known or not",
            "keys/erasure.py": "whatever lies there may hold a key",
            "bug_capsule/make.py": "the folders that go into a capsule",
            "writing/planning/write_plan.py": "the base path, before there is a table",
            "writing/parquet_import.py": "the folder that is imported, which is no table",
        },
    ),
    # The table's lock.
    (
        "a transaction or a service takes the table's lock",
        r"\block_(?:of|for)\(|\bhold\(|\.held\(\)",
        {
            "concurrency/locks": "the locks",
            "transaction": "begins, commits and undoes writes",
            "services/table_service.py": "for every service",
            "verify/repair.py": "tables whose properties cannot be read have no service",
        },
    ),
    # The timeline.
    (
        "a snapshot loads the timeline",
        r"(?<!def )\bload_timeline\(",
        {
            "file_system_view/snapshot.py": "makes snapshots",
            "timeline/archived_timeline.py": "looks where the file of an instant was moved to; below snapshots",
        },
    ),
    # A table looked at anew in order to change it.
    (
        "a snapshot is given, not loaded again",
        r"(?<!def )\b(?:load_snapshot\(|reloaded\(\))",
        {
            "file_system_view/snapshot.py": "makes snapshots",
            "metadata_table/own_table.py": "the metadata table's own, under the lock",
            "custom_index": "a store that is ahead of a write's snapshot: later commits, or undone ones",
            "transaction": "under the lock, and after each undoing",
            "services/table_service.py": "for every service, under the lock",
            "services/compaction": "after a dead execution was undone",
            "services/cleaning.py": "after each undoing, and between stretches of deleting, when others had the lock",
            "services/restore.py": "after undoing",
            "services/rollback.py": "after each undoing",
            "services/upgrade.py": "after each undoing; the timeline of the metadata table",
            "writing/planning/write_plan.py": "a write is planned from it",
            "writing/operation.py": "keys that are known just before a write begins; when it was completed",
            "validation/quarantine.py": "another table",
            "reading/metadata_listing.py": "a listing that is given no snapshot",
            "reading/stability.py": "when a second of a store that tells no less is over",
            "inspector.py": "tables with any feature",
        },
    ),
)

# First docstring lines name their subject at once: a noun phrase, or a verb for what a function does.
LONGEST_HEAD = 90
REFUSED_HEAD = re.compile(
    r"(?:What|Which|That|Those|Where|Who|Whose|How|Of|Itself)\b|.*\b(?:of ours|all the same)\b"
)


def modules(root: Path, package: str) -> Iterator[Path]:
    """The sources of a package."""
    src = root / "packages" / package.replace("_", "-") / "src"
    for path in sorted(src.rglob("*.p*")):
        if path.suffix in {".py", ".pyx", ".pxd", ".pyi"}:
            yield path


def between_packages(root: Path) -> Iterator[str]:
    for package in ORDER:
        refused = {*ORDER[ORDER.index(package) + 1 :]}
        if package != "hudi_spark":
            refused |= {"pyspark", "pyspark_hudi"}
        for path in modules(root, package):
            text = path.read_text(encoding="utf-8")
            for match in IMPORT.finditer(text):
                if match[1] in refused:
                    yield f"{path.relative_to(root)}: {package} imports {match[1]}"


def between_rooms(root: Path) -> Iterator[str]:
    for package, floors in FLOORS.items():
        floor = {room: n for n, rooms in enumerate(floors) for room in rooms}
        used = set()
        for path in modules(root, package):
            inner = path.relative_to(root / "packages" / package.replace("_", "-") / "src").parts
            own = inner[1].partition(".")[0] if inner[0] == package else "__init__"
            if own == "__init__":
                continue
            if own not in floor:
                yield f"{path.relative_to(root)}: the room {own} has no floor in tools/check_layers.py"
                continue
            for match in IMPORT.finditer(path.read_text(encoding="utf-8")):
                if match[1] != package:
                    continue
                named = match[2].split(".")[1:2] or re.findall(r"\w+", match[3] or "")
                for room in named:
                    if room == own or room not in floor or floor[room] < floor[own]:
                        continue
                    used.add((own, room))
                    if (own, room) not in UPWARD:
                        yield f"{path.relative_to(root)}: {own} imports {room}, which is not below it"
        for own, room in UPWARD.keys() - used:
            if own in floor and room in floor:
                yield f"tools/check_layers.py: nothing of {own} imports {room} any more"


def of_modules(root: Path) -> Iterator[str]:
    for package in ORDER:
        folders: Counter[Path] = Counter()
        stems: Counter[str] = Counter()
        for path in modules(root, package):
            text, name = path.read_text(encoding="utf-8"), path.relative_to(root)
            lines = text.count("\n")
            most, _ = LONGER.get("/".join(path.parts[path.parts.index("src") + 1 :]), (MOST_LINES, ""))
            if lines > most:
                yield f"{name}: {lines} lines; past {most} a module has two subjects"
            yield from _of_size(path, lines)
            if re.search(r"^__all__\b", text, re.MULTILINE) and path.stem != "__init__":
                yield (
                    f"{name}: has __all__; what is public stands in the package's root, and names that are imported "
                    "here come from their own module"
                )
            if path.name == "__init__.py" and path.parent.name != "pyspark_hudi":
                if re.search(r"^(?:def|class|for|if|while)\b", text, re.MULTILINE):
                    yield f"{name}: __init__ holds names only"
            elif path.suffix == ".py" and not path.stem.startswith("_"):
                folders[path.parent] += 1
                stems[path.stem] += 1
        for name in (n for n in SMALL if n.startswith(f"{package}/")):
            if not (root / "packages" / package.replace("_", "-") / "src" / name).is_file():
                yield f"{name}: is gone, and still in SMALL"
        for folder, count in folders.items():
            most = MOST_AT_THE_TOP if folder.name == package else MOST_IN_A_FOLDER
            if count > most:
                yield f"{folder.relative_to(root)}: {count} modules; at most {most}"
        for stem, count in stems.items():
            if count > 1 and stem not in COMMON_STEMS:
                yield f"{package}: {count} modules are called {stem}"


def _of_size(path: Path, lines: int) -> Iterator[str]:
    """Of a public module: small ones stand in `SMALL`, and nothing else does."""
    if path.suffix != ".py" or path.stem.startswith("_"):
        return
    name = "/".join(path.parts[path.parts.index("src") + 1 :])
    if lines < LEAST_LINES and name not in SMALL:
        yield f"{name}: {lines} lines; below {LEAST_LINES} it belongs to a neighbour, or into SMALL with its reason"
    if lines >= LEAST_LINES and name in SMALL:
        yield f"{name}: {lines} lines; it needs no reason in SMALL any more"


def of_classes(root: Path) -> Iterator[str]:
    """Names of classes, each of which stands for one thing in all packages."""
    homes: dict[str, list[str]] = {}
    for package in ORDER:
        for path in modules(root, package):
            if path.suffix == ".py":
                for node in ast.parse(path.read_text(encoding="utf-8")).body:
                    if isinstance(node, ast.ClassDef):
                        homes.setdefault(node.name, []).append(str(path.relative_to(root)))
    for name, paths in homes.items():
        if len(paths) > 1:
            yield f"{paths[1]}: {name} is the name of a class of {paths[0]} too"


# Such a comparison is a property of `TableVersion`, with a name that says what depends on it.
VERSION_NUMBER = re.compile(
    r"\bconfig\.version(?:\.layout)? *(?:[<>]=?|[=!]=|in\b) *[\d(]|\blayout_version\b"
)


def of_versions(root: Path) -> Iterator[str]:
    for package in ("hudi_timeline", "hudi_spark"):
        for path in modules(root, package):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if VERSION_NUMBER.search(line):
                    yield f"{path.relative_to(root)}:{number}: compares a table version; ask TableVersion"


def of_documents(root: Path) -> Iterator[str]:
    for pattern in DOCUMENTS:
        for path in sorted(root.glob(pattern)):
            for match in DEEP.finditer(path.read_text(encoding="utf-8")):
                if match[1] not in PUBLIC_ROOMS:
                    yield f"{path.relative_to(root)}: imports {match[1]}, which is not a package's root"


def public_names(root: Path, package: str) -> set[str]:
    """Names of a package's root: those of its `_HOMES`, and all errors."""
    packages = root / "packages"
    src = packages / package.replace("_", "-") / "src" / package
    errors = ast.parse((packages / "hudi-format/src/hudi_format/errors.py").read_text(encoding="utf-8"))
    names = {node.name for node in errors.body if isinstance(node, ast.ClassDef)}
    for node in ast.walk(ast.parse((src / "__init__.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Dict):
            names |= {key.value for key in node.keys if isinstance(key, ast.Constant)}
    return names


def of_programs(root: Path) -> Iterator[str]:
    """Public names that benchmarks and tools import past the roots of their packages."""
    public = {package: public_names(root, package) for package in ORDER}
    for pattern in PROGRAMS:
        for path in sorted(root.glob(pattern)):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.ImportFrom) or "." not in (module := node.module or ""):
                    continue
                if module in PUBLIC_ROOMS or (package := module.partition(".")[0]) not in public:
                    continue
                for name in sorted({a.name for a in node.names} & public[package]):
                    yield f"{path.relative_to(root)}:{node.lineno}: imports {name} from {module}, not from {package}"


def of_calls(root: Path) -> Iterator[str]:
    """Calls outside of the rooms and modules that may make them, and entries of those that make none any more."""
    src = root / "packages" / "hudi-timeline" / "src" / "hudi_timeline"
    lines = [
        (path.relative_to(src).as_posix(), number, line)
        for path in modules(root, "hudi_timeline")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    ]
    for what, pattern, allowed in CALLS:
        call, used = re.compile(pattern), set()
        for inner, number, line in lines:
            if call.search(line) is None:
                continue
            room = next((r for r in allowed if inner == r or inner.startswith(f"{r}/")), None)
            if room is None:
                yield f"{(src / inner).relative_to(root)}:{number}: {what}: {line.strip()}"
            else:
                used.add(room)
        for room in allowed.keys() - used:
            yield f"tools/check_layers.py: {room} may be taken from a list: it no longer does this: {what}"


# Where names of options and of properties stand; everywhere else they are constants.
OPTION_NAME = re.compile(r"""[frb]?["'](_?(?:hoodie|hudi)\.[A-Za-z][\w.\-]*)["']""")
OPTION_ROOMS = ("options/", "testing/", "table_config.py", "table_version.py")
# Names of that form which are no options, or not of this package's callers.
NO_OPTIONS = {
    "hoodie.properties": "a file",
    "hoodie.properties.backup": "a file",
    "hoodie.properties.updated": "a file",
    "hudi.clean.guarded": "extra metadata of a clean plan",
    "hudi.schema.dropped": "extra metadata of a commit",
    "hudi.quarantine": "extra metadata of a commit",
    "hudi.lock": "extra metadata of a commit",
    "hudi.writer": "extra metadata of a commit",
    "hudi.streaming.folder": "between the two halves of the streaming reader, which users do not see",
    "hudi.streaming.poll.seconds": "between the two halves of the streaming reader, which users do not see",
    "hoodie.filesystem.view.remote.host": "of sessions with Apache Hudi's bundle; taken out of the options",
    "hoodie.filesystem.view.remote.port": "of sessions with Apache Hudi's bundle; taken out of the options",
}
DOCSTRING = re.compile(r'"""[\s\S]*?"""')
DECLARATION = re.compile(r"""(?:ConfigKey|refused_if_\w+)\(\s*"([^"]+)\"""")


def of_options(root: Path) -> Iterator[str]:
    """Names of options stand in their room, each declared once.

    hudi-format and hudi-index are below that room: their errors name options by constants of their own, which
    tests/options/test_registry.py of hudi-timeline compares with the declarations.
    """
    declared: Counter[str] = Counter()
    for package in ("hudi_timeline", "hudi_spark"):
        src = root / "packages" / package.replace("_", "-") / "src" / package
        for path in sorted(src.rglob("*.py")):
            text, where = path.read_text(), path.relative_to(src).as_posix()
            if where.startswith("options/"):
                declared.update(DECLARATION.findall(text))
            if package == "hudi_timeline" and where.startswith(OPTION_ROOMS):
                continue
            for name in OPTION_NAME.findall(DOCSTRING.sub("", text)):
                if name not in NO_OPTIONS:
                    yield f"{package}/{where}: {name!r} has its constant in hudi_timeline.options or table_config"
    known = root / "packages/hudi-timeline/src/hudi_timeline/options/known_options.tsv"
    lines = known.read_text().splitlines() if known.exists() else []
    declared.update(line.split("\t")[0] for line in lines if line and not line.startswith("#"))
    for name, times in declared.items():
        if times > 1:
            yield f"options: {name} is declared {times} times"


def of_tests(root: Path) -> Iterator[str]:
    """Mirrored tests: `src/hudi_x/room/y.py` has `tests/room/test_y.py`, and no other file is in the rooms of tests."""
    entries = tomllib.loads((root / TESTED_ELSEWHERE).read_text(encoding="utf-8"))["covered"]
    elsewhere = Counter(module for entry in entries for module in entry["modules"])
    mirrored = set()
    for package in ORDER:
        home = root / "packages" / package.replace("_", "-")
        src, tests = home / "src" / package, home / "tests"
        for path in modules(root, package):
            if path.suffix not in {".py", ".pyx"} or path.stem == "__init__" or src not in path.parents:
                continue
            test = tests / path.parent.relative_to(src) / f"test_{path.stem.strip('_')}.py"
            mirrored.add(test)
            if not test.is_file() and path.suffix == ".py":
                name = path.relative_to(home / "src").as_posix()
                if not elsewhere.pop(name, 0):
                    yield (
                        f"{path.relative_to(root)}: no {test.relative_to(root)}, and {TESTED_ELSEWHERE} has no file "
                        "that covers it"
                    )
        for path in sorted(tests.rglob("test_*.py")):
            if path not in mirrored and path.relative_to(tests).parts[0] != "scenarios":
                yield f"{path.relative_to(root)}: tests no module of that name; move it to tests/scenarios"
    for module in elsewhere:
        yield f"{TESTED_ELSEWHERE}: {module} has a test of its own, or is not there, or is named twice"
    for entry in entries:
        if not (root / entry["by"]).is_file():
            yield f"{TESTED_ELSEWHERE}: there is no {entry['by']}"


def public_heads(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Name and first docstring line of a module, its classes and its public functions."""
    open_nodes: list[tuple[str, ast.AST]] = [("", tree)]
    while open_nodes:
        name, node = open_nodes.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield name or "the module", text.partition("\n")[0]
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for child in ast.iter_child_nodes(node):
                own = getattr(child, "name", "") or ""
                if not own.startswith("_") or own == "__init__":
                    open_nodes.append((f"{name}.{own}".strip("."), child))


def of_docstrings(root: Path) -> Iterator[str]:
    """Docstring heads that are too long, cut off, or do not begin with their subject."""
    for package in ORDER:
        for path in modules(root, package):
            if path.suffix != ".py":
                continue
            for name, head in public_heads(ast.parse(path.read_text(encoding="utf-8"))):
                if len(head) > LONGEST_HEAD:
                    fault = f"has {len(head)} characters; at most {LONGEST_HEAD}"
                elif not head.endswith((".", ":")):
                    fault = "ends in the middle of a sentence"
                elif REFUSED_HEAD.match(head):
                    fault = "does not begin with its subject"
                else:
                    continue
                yield f"{path.relative_to(root)}: first docstring line of {name} {fault}: {head}"


def violations(root: Path) -> list[str]:
    return [
        *of_tests(root),
        *between_packages(root),
        *between_rooms(root),
        *of_modules(root),
        *of_classes(root),
        *of_versions(root),
        *of_documents(root),
        *of_programs(root),
        *of_calls(root),
        *of_options(root),
        *of_docstrings(root),
    ]


def main() -> int:
    found = violations(Path(__file__).resolve().parent.parent)
    print("\n".join(found) or "layers: every import goes leftward and downward")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
