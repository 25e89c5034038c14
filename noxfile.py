"""All that CI does, one session each: what passes here passes there.

Sessions install the wheels that `_wheels` builds from this checkout, so that they test what users install, beside
packages in the versions of requirements/*.txt (`nox -s lock` makes them anew).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import nox

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "tools"))
import lock as versions  # noqa: E402 - it is no installed module

PACKAGES = ("hudi-format", "hudi-index", "hudi-timeline", "hudi-spark")  # in layer order
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PYSPARKS = {
    name: versions.pinned("pyspark", versions.FOLDER / f"pyspark-{name}.txt") for name in versions.PYSPARKS
}
CONSTRAINTS = ("-c", str(versions.CONSTRAINTS))
BUILDING = versions.group("building")
TESTING = versions.group("testing")
ENGINES = versions.group("engines")
PEERS = versions.group("peers")
FUZZING = versions.group("fuzzing")
DIST = ROOT / "dist"
BIN = "Scripts" if os.name == "nt" else "bin"

# Servers of tests are on this machine: not where a proxy is; and Spark does not ask for the address of its host's name.
for _name in ("no_proxy", "NO_PROXY"):
    _known = [n for n in os.environ.get(_name, "").split(",") if n]
    os.environ[_name] = ",".join(dict.fromkeys([*_known, "127.0.0.1", "localhost"]))
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
# Images of containers often say that Python shall keep no bytecode.  Sessions start thousands of processes, Spark's
# workers among them, and each would compile all that it imports: most of the time that starting it takes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = True
nox.options.sessions = ["lint", "layers", "types", "unit-3.11", "scenario"]


def _source_hash() -> str:
    """Changes with any file that a wheel is made of."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        folder = ROOT / "packages" / package
        files = [folder / "pyproject.toml", folder / "setup.py", folder / "README.md"]
        files += sorted(
            p for p in (folder / "src").rglob("*") if p.suffix in {".py", ".pyx", ".pxd", ".pyi", ".typed"}
        )
        for path in files:
            if path.is_file():
                digest.update(str(path.relative_to(ROOT)).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _wheels(session: nox.Session) -> dict[str, Path]:
    """Wheels of all packages, built from this checkout's sdists if they are not up to date."""
    tag = f"cp{''.join(map(str, _version(session)))}"
    folder = DIST / tag
    stamp = folder / "sources.sha256"
    current = _source_hash()
    if not stamp.is_file() or stamp.read_text() != current:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        session.install(*CONSTRAINTS, *BUILDING)
        for package in PACKAGES:
            # Without --wheel the wheel is made from the sdist, which so is known to build.
            session.run("python", "-m", "build", "--no-isolation", "--skip-dependency-check",
                        "--outdir", str(folder), f"packages/{package}", silent=True)  # fmt: skip
        stamp.write_text(current)
    return {p: next(folder.glob(f"{p.replace('-', '_')}-*.whl")) for p in PACKAGES}


def _version(session: nox.Session) -> tuple[int, int]:
    text = session.run("python", "-c", "import sys; print(*sys.version_info[:2])", silent=True, log=False)
    major, minor = str(text).split()
    return int(major), int(minor)


def _pyspark(session: nox.Session, wanted: str) -> Path:
    """A wheel of PySpark, which the package index has as a source only: built once for all sessions.

    uv keeps one that it built too, but builds it again for each installation where the index says nothing of how
    long its answers hold; each time takes a gigabyte of its cache, and the time of compressing 300 MB.
    """
    folder = DIST / "pyspark" / hashlib.sha256(wanted.encode()).hexdigest()[:12]
    built = sorted(folder.glob("pyspark-*.whl"))
    if not built:
        DIST.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=DIST, prefix="pyspark-") as work:
            builder = Path(work) / "venv"
            session.run("python", "-m", "venv", str(builder), silent=True)
            # Not below /tmp, which may be small, or memory.  Before pip 23.1, which Debian 12 has not, it takes a
            # setuptools without the package wheel for enough.
            # 400 MB: pip does not go on where a connection ends in their middle, so it begins again.
            for last in (False, False, True):
                session.run(str(builder / BIN / "python"), "-m", "pip", "wheel", "--quiet", "--no-deps",
                            "--no-cache-dir", "--use-pep517", "--wheel-dir", f"{work}/wheel", wanted,
                            env={"TMPDIR": work, "PIP_CONSTRAINT": CONSTRAINTS[1]}, external=True,
                            success_codes=[0] if last else range(256))  # fmt: skip
                if any(Path(work, "wheel").glob("pyspark-*.whl")):
                    break
            folder.mkdir(parents=True, exist_ok=True)
            for wheel in Path(work, "wheel").glob("pyspark-*.whl"):
                wheel.replace(folder / wheel.name)  # whole or not there, for sessions beside this one
        built = sorted(folder.glob("pyspark-*.whl"))
    return built[-1]


def _install(
    session: nox.Session, package: str, *extra: str, constraints: tuple[str, str] = CONSTRAINTS
) -> None:
    """Install a package and those below it, and nothing above it."""
    wheels = _wheels(session)
    wanted = PACKAGES[: PACKAGES.index(package) + 1]
    extra = tuple(str(_pyspark(session, e)) if e in PYSPARKS.values() else e for e in extra)
    session.install(*constraints, *(str(wheels[p]) for p in wanted), *extra)
    # A wheel of the same version but other content is not taken for new.
    arguments = (
        ("--reinstall", "--no-deps") if session.venv_backend == "uv" else ("--force-reinstall", "--no-deps")
    )
    session.install(*arguments, *(str(wheels[p]) for p in wanted))


def _workers() -> int:
    """Processes of a session's tests: tools/run.py gives one to each of those that run at once."""
    return int(os.environ.get("HUDI_TEST_WORKERS") or min(2, os.cpu_count() or 1))


def _pytest(session: nox.Session, *arguments: str, env: dict[str, str] | None = None) -> None:
    """pytest in a process for each core, at most two: each may hold a Spark of its own."""
    workers = _workers()
    # A file's tests stay together: they share sessions, servers and tables.
    spread = ("-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder") if workers > 1 else ()
    session.run("python", "-m", "pytest", "-q", "--timeout=600", *spread, *arguments, *session.posargs,
                env=env or {})  # fmt: skip


@nox.session
def build(session: nox.Session) -> None:
    """Wheels of all packages, which the other sessions install; each is built from its sdist."""
    _wheels(session)


@nox.session
def pysparks(session: nox.Session) -> None:
    """Wheels of PySpark, which the other sessions install."""
    for wanted in PYSPARKS.values():
        _pyspark(session, wanted)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and format of all Python code."""
    session.install(*CONSTRAINTS, *versions.group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def layers(session: nox.Session) -> None:
    """Imports go leftward only, sibling pins agree, modules keep one subject."""
    session.run("python", "tools/check_layers.py")
    session.run("python", "tools/check_pins.py")
    session.run("python", "tools/check_changes.py")
    session.run("python", "tools/lock.py")


@nox.session
def types(session: nox.Session) -> None:
    """mypy strict over each package; the stubs of compiled modules agree with them."""
    _install(session, "hudi-spark", PYSPARKS["3.5"], *versions.group("types"))
    for package in PACKAGES:
        session.run("mypy", f"packages/{package}/src")
    stubs = sorted(ROOT.glob("packages/*/src/**/_[!_]*.pyi"))
    modules = [".".join(p.relative_to(p.parents[len(p.relative_to(ROOT).parts) - 4]).with_suffix("").parts)
               for p in stubs]  # fmt: skip
    # In a folder of its own, so that the installed packages are checked and not the sources.
    with session.chdir(session.create_tmp()):
        session.run("stubtest", "--ignore-missing-stub", *modules)


@nox.session(python=PYTHONS)
@nox.parametrize("package", PACKAGES[:3], ids=PACKAGES[:3])
def unit(session: nox.Session, package: str) -> None:
    """One package's tests, with nothing above it installed."""
    _install(session, package, *TESTING, *ENGINES)
    _pytest(session, f"packages/{package}/tests", "-m", "not slow")


# What `lowest` tries without arguments: where versions of Arrow and of the command line's libraries have differed.
LOWEST = (
    "hudi-index/tests",
    "hudi-format/tests/merge/test_overlay.py",
    "hudi-format/tests/arrow/test_sizes.py",
    "hudi-format/tests/merge/test_key_index.py",
    "hudi-format/tests/parquet/test_reader.py",
    "hudi-format/tests/schema/test_evolution.py",
    "hudi-timeline/tests/cli/test_main.py",
    "hudi-timeline/tests/scenarios/test_odd_arrow.py",
    "hudi-timeline/tests/reading/test_filters.py",
    "hudi-timeline/tests/scenarios/test_reader_remedies.py",
)


@nox.session(python=PYTHONS[0])
def lowest(session: nox.Session) -> None:
    """The three lower packages on the lowest versions that they declare: a part of their tests, with `-- all` all."""
    _install(session, "hudi-timeline", *versions.lowest_session(), constraints=("-c", str(versions.LOWEST)))
    whole = session.posargs == ["all"]
    if whole:
        session.posargs.clear()
    tried = [f"{p}/tests" for p in PACKAGES[:3]] if whole else LOWEST
    _pytest(session, *(f"packages/{t}" for t in tried), "-m", "not slow")


@nox.session
@nox.parametrize("pyspark", list(PYSPARKS), ids=list(PYSPARKS))
def spark(session: nox.Session, pyspark: str) -> None:
    """hudi-spark's tests on PySpark 3.5; on the newest 4.x those that a version of PySpark can change."""
    _install(session, "hudi-spark", PYSPARKS[pyspark], *TESTING, *ENGINES)
    chosen = "not slow" if pyspark == "3.5" else "not slow and not one_version"
    _pytest(session, "packages/hudi-spark/tests", "-m", chosen)


@nox.session
@nox.parametrize("pyspark", list(PYSPARKS), ids=list(PYSPARKS))
def spark_full(session: nox.Session, pyspark: str) -> None:
    """All of hudi-spark's tests, the slow ones too, on PySpark 3.5 and on the newest 4.x."""
    _install(session, "hudi-spark", PYSPARKS[pyspark], *TESTING, *ENGINES)
    _pytest(session, "packages/hudi-spark/tests", "--timeout=3600")


@nox.session
def documents(session: nox.Session) -> None:
    """What documents say is there, public names are known to type checkers, and the tools of this project do; the code
    of the guides does what they say."""
    _install(session, "hudi-spark", PYSPARKS["3.5"], *TESTING, *ENGINES)
    tests = (str(p.relative_to(ROOT)) for p in sorted(ROOT.glob("tests/test_*.py")))
    session.run("python", "-m", "pytest", "-q", *tests, "tests/guides", "-m", "not slow")


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation site, in dist/site: every link leads somewhere, and the notebooks run."""
    _install(session, "hudi-timeline", *versions.group("docs"))
    session.run("mkdocs", "build", "--strict", "--quiet", *session.posargs, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def screenshots(session: nox.Session) -> None:
    """Pictures of the site's pages in a Chromium of this machine, in dist/screenshots; fails for what is not seen."""
    _install(session, "hudi-timeline", *versions.group("docs", "browser"))
    session.run("mkdocs", "build", "--strict", "--quiet", env={"NO_MKDOCS_2_WARNING": "1"})
    session.run("python", "tools/screenshots.py", str(DIST / "site"), str(DIST / "screenshots"))


@nox.session
def scenario(session: nox.Session) -> None:
    """What crosses packages: golden tables, crashes at every storage call, killed writers."""
    _install(session, "hudi-spark", PYSPARKS["3.5"], *TESTING, *ENGINES)
    _pytest(
        session,
        "tests/scenarios",
        "tests/golden",
        "-m",
        "not slow",
    )


# Of the long forms in a package, those that the session `faults` runs.
FAULTS = ("test_interrupts.py", "test_power_failure.py")


@nox.session
def soak(session: nox.Session) -> None:
    """The long forms: the cases of sampled tests that CI leaves out, every golden answer on Spark, 40 killed writers
    without a JVM, 10 on Spark, 200 histories of partitions inside of partitions, ten minutes of readers beside a
    writer that cleans."""
    _install(session, "hudi-spark", PYSPARKS["3.5"], *TESTING, *ENGINES)
    sampled = (*(f"packages/{p}/tests" for p in PACKAGES), "tests/golden", "tests/guides")
    _pytest(session, *sampled, "-m", "slow", "--timeout=3600")
    # Tests that go further where they are told to, as those do that draw examples.
    further = [
        path
        for package in PACKAGES
        for path in sorted((ROOT / "packages" / package / "tests").rglob("test_*.py"))
        if any(word in path.read_text(encoding="utf-8") for word in ("HUDI_SOAK", "from hypothesis import"))
    ]
    further = [str(path.relative_to(ROOT)) for path in further if path.name not in FAULTS]
    _pytest(session, *further, "tests/scenarios", "--timeout=5400", env={"HUDI_SOAK": "1"})


@nox.session
def faults(session: nox.Session) -> None:
    """The long forms of cuts and faults: every call, 200 seeds on each store, 2,600 interrupts, 4,400 power cuts."""
    _install(session, "hudi-timeline", *TESTING)
    _pytest(session, "tests/scenarios/test_cuts.py", "tests/scenarios/test_random_faults.py", "--timeout=7200",
            env={"HUDI_FAULTS": "1"})  # fmt: skip
    _pytest(session, *(f"packages/hudi-timeline/tests/scenarios/{name}" for name in FAULTS),
            "--timeout=7200", env={"HUDI_SOAK": "1"})  # fmt: skip


@nox.session
def simulation(session: nox.Session) -> None:
    """Each act at every step of each other one on each kind of table, more than a million interleavings, and 100,000
    that seeds draw; or what `-- FIRST LAST` says of the latter, or `-- --pairs FIRST LAST`; some hours of two cores.

    Which failed is said, and of those that are drawn, with how few switches.
    """
    _install(session, "hudi-timeline", *TESTING)
    for arguments in [session.posargs] if session.posargs else (["--pairs"], ["0", "100000"]):
        session.run("python", "tools/simulate.py", *arguments)


@nox.session
def simulation_smoke(session: nox.Session) -> None:
    """Of those pairs as many as decide 20,000 interleavings, and of the drawn ones as many as there is time for."""
    _install(session, "hudi-timeline", *TESTING)
    # Where the machine is slow, fewer: each of these is a bound, in seconds of a processor.
    for arguments in (["--pairs", "0", "280", "--processor-seconds", "400"],
                      ["0", "10000", "--processor-seconds", "100"]):  # fmt: skip
        session.run("python", "tools/simulate.py", *arguments, "--processes", str(_workers()))


@nox.session
def rivals(session: nox.Session) -> None:
    """Writers and services of one table that are killed and stopped, Apache Hudi among them: half an hour on ZooKeeper,
    or what `-- --lock dynamodb --minutes 5 --spark 2` says (tools/soak/rivals.py)."""
    _install(session, "hudi-spark", PYSPARKS["3.5"], *TESTING, *ENGINES)
    usual = [
        "--lock",
        "zookeeper",
        "--minutes",
        "30",
        "--spark",
        "4",
        "--python",
        "2",
        "--services",
        "3",
        "--apache",
        "1",
    ]
    session.run("python", "tools/soak/rivals.py", *(session.posargs or usual))


@nox.session
def differential(session: nox.Session) -> None:
    """Tables drawn from 100 seeds, or from those that `-- FIRST LAST [VERSION]` says, under this project and Apache
    Hudi in turns: after each step both must answer the same (tools/soak/differential.py); some hours."""
    _install(session, "hudi-spark", PYSPARKS["3.5"], *TESTING, *PEERS)
    first, last, *version = session.posargs or ("0", "100")
    folder = str(Path(session.create_tmp()) / "differential")
    session.run("python", "tools/soak/differential.py", first, last, folder, *version)


@nox.session
def fuzz_smoke(session: nox.Session) -> None:
    """Every parser of untrusted bytes under coverage-guided fuzzing, a second each, on the same inputs each time.

    What has not been tried yet is the business of `fuzz`, which draws another seed in each run.
    """
    _install(session, "hudi-timeline", *FUZZING)
    jobs = str(_workers())
    corpus = Path(session.create_tmp()) / "corpus"  # not what `fuzz` has found here
    shutil.rmtree(corpus, ignore_errors=True)
    session.run("python", "fuzz/run.py", "--seconds", "1", "--seed", "1", "--jobs", jobs,
                env={"PYTHONHASHSEED": "0", "HUDI_FUZZ_CORPUS": str(corpus)})  # fmt: skip


@nox.session
def fuzz(session: nox.Session) -> None:
    """The long form: 600 seconds for each target, or what follows `--` (`-- --seconds 60 log_file`)."""
    _install(session, "hudi-timeline", *FUZZING)
    session.run("python", "fuzz/run.py", *(session.posargs or ("--seconds", "600", "--jobs", "2")))


@nox.session
def damage(session: nox.Session) -> None:
    """Cut and changed golden files: 10,000 one-byte changes of each; the table is fuzz/results/damage-10000.md."""
    _install(session, "hudi-timeline")
    long = ("--changes", "10000", "--name", "damage-10000", "--jobs", "2")
    session.run("python", "fuzz/damage.py", *(session.posargs or long))


@nox.session
def asan(session: nox.Session) -> None:
    """The compiled modules under AddressSanitizer and UndefinedBehaviorSanitizer (gcc): tests, sweeps, fuzz inputs."""
    _install(session, "hudi-timeline", *TESTING, *BUILDING)  # for what they depend on; other modules are run
    session.run("python", "fuzz/sanitize.py", *session.posargs)


@nox.session
def interop(session: nox.Session) -> None:
    """Apache Hudi and hudi-rs read what we write, and the other way round; the part that CI runs."""
    _install(session, "hudi-spark", PYSPARKS["3.5"], *TESTING, *PEERS)
    # Before the tests, each of which has little time: the jars of Apache Hudi.
    session.run("python", "tools/interop/bundles.py", "0.15.0", "1.0.2", "1.2.0")
    _pytest(session, "tests/interop", "-m", "not slow")


@nox.session
def interop_full(session: nox.Session) -> None:
    """All of the interoperability suite, and 200 histories of two writers."""
    _install(session, "hudi-spark", PYSPARKS["3.5"], *TESTING, *PEERS)
    _pytest(session, "tests/interop", "--timeout=3600", env={"HUDI_SOAK": "1"})
    session.run("python", "tools/interop/two_writers.py", "0", "200", str(Path(session.create_tmp()) / "two"))


@nox.session
def wheels(session: nox.Session) -> None:
    """Each package's wheel, which is built from its sdist, works in a clean environment."""
    _smoke(session, _wheels(session), "ci", CONSTRAINTS)


def _smoke(session: nox.Session, built: dict[str, Path], name: str, versions_of: tuple[str, ...]) -> None:
    """Install each wheel with those below it into an empty environment, and use it there.

    `versions_of` are arguments of `uv pip install` that choose the versions of what the packages depend on.
    """
    for package in PACKAGES:
        below = PACKAGES[: PACKAGES.index(package) + 1]
        clean = Path(session.create_tmp()) / f"clean-{package}-{name}"
        shutil.rmtree(clean, ignore_errors=True)
        session.run("python", "-m", "venv", "--without-pip", str(clean), silent=True)
        python = str(clean / BIN / "python")
        # 3.5 has no data sources.
        extra = [str(_pyspark(session, PYSPARKS["4"]))] if package == "hudi-spark" else []
        asked = [w for w in versions.of_packages(below, extras=()) if not w.startswith("pyspark")]
        session.run("uv", "pip", "install", "--quiet", "--python", python, *versions_of, *asked,
                    *(str(built[p]) for p in below), *extra, external=True)  # fmt: skip
        session.run(python, "-I", "tools/check_wheels.py", package.replace("-", "_"), external=True)


# The oldest Linux that the wheels run on: glibc 2.17 of 2012 and later, or what their symbols ask for.
MANYLINUX = "auto"


@nox.session(python=PYTHONS)
def release(session: nox.Session) -> None:
    """Sdists, and wheels for the Linux of this machine's processor, as a package index takes them: dist/release.

    Each wheel is built from its sdist, repaired by auditwheel, and used in an empty environment with the newest and
    with the lowest versions that it allows and this Python has.  Wheels for another processor are built where one is:
    the session is the same there.
    """
    built = _wheels(session)
    out = DIST / "release"
    out.mkdir(parents=True, exist_ok=True)
    session.install(*CONSTRAINTS, *versions.group("release"))
    made: dict[str, Path] = {}
    for package in PACKAGES:
        wheel = built[package]
        sdist = next(wheel.parent.glob(f"{package.replace('-', '_')}-*.tar.gz"))
        shutil.copy2(sdist, out)
        if wheel.name.endswith("-none-any.whl"):
            made[package] = Path(shutil.copy2(wheel, out))
            continue
        # Repaired apart, to know what it is called.
        with tempfile.TemporaryDirectory(dir=DIST) as work:
            session.run(
                "auditwheel", "repair", "--plat", MANYLINUX, "--wheel-dir", work, str(wheel), silent=True
            )
            repaired = next(Path(work).glob("*.whl"))
            made[package] = Path(shutil.move(repaired, out / repaired.name))
    session.run("python", "tools/check_release.py", str(out))
    session.run("twine", "check", "--strict", *(str(p) for p in sorted(out.iterdir())))
    _smoke(session, made, "newest", ("--resolution", "highest"))
    # What is older than this Python has no wheels for it.
    _smoke(session, made, "lowest", ("--resolution", "lowest-direct", "--only-binary", ":all:"))


# What `bench_smoke` runs, each at a scale that only shows that it does and computes the right thing.
SMOKES = (
    ("headline.py", "--engines", "ours-spark,ours"),
    ("merge_on_read.py", "--kinds", "base-heavy", "--engines", "ours,hudi-rs,pyarrow"),
    ("mor_writes.py", "--engines", "ours,pyarrow", "--index", "BUCKET", "--updates", "8000"),
    ("tagging.py", "--engines", "ours"),
    ("writers.py",),
    ("neighbours.py",),
)
# And what it runs with `-- all` beside.
MORE_SMOKES = (
    ("headline.py", "--engines", "plain,ours-spark,ours,floor"),
    ("incremental.py", "--engines", "ours"),
    ("startup.py",),
    ("headline.py", "--engines", "ours", "--store", "s3", "--columns", "30", "--index", "BLOOM"),
    ("formats.py",),
    ("memory.py",),
    ("files1000.py", "--works", "ours,global,rewrite"),
    ("cdc.py",),
    ("planning.py",),
    ("metadata_commit.py",),
    ("point_lookups.py",),
    ("tagging.py", "--engines", "ours-spark"),
    ("spikes.py", "--contenders", "ours"),
)


@nox.session
def bench_smoke(session: nox.Session) -> None:
    """Benchmarks at a scale that only shows that they run and compute the right thing; with `-- all` each of them."""
    _install(session, "hudi-spark", PYSPARKS["3.5"], *TESTING, *PEERS, *ENGINES)
    session.run("python", "tools/interop/bundles.py", "0.15.0")
    whole = session.posargs == ["all"]
    if whole:
        session.posargs.clear()
    _pytest(session, "benchmarks/micro", "--benchmark-disable")  # each is called once, and not timed
    for script, *arguments in (*SMOKES, *(MORE_SMOKES if whole else ())):
        session.run("python", f"benchmarks/macro/{script}", "--scale", "smoke", *arguments)
    if whole:
        session.run("python", "benchmarks/macro/storage_calls.py", "--repeat", "1")


# What `nox -s bench` measures: a script of benchmarks/macro and its arguments, by the name of its table.
BENCHMARKS = {
    "formats": ("formats.py",),
    "memory": ("memory.py",),
    "merge-on-read": ("merge_on_read.py",),
    "files1000": ("files1000.py",),
    "incremental": ("incremental.py",),
    "cdc": ("cdc.py",),
    "cdc-spark": ("cdc.py", "--engine", "spark"),
    "mor-writes-simple": ("mor_writes.py",),
    "mor-writes-bucket": ("mor_writes.py", "--index", "BUCKET"),
    "mor-writes-bucket-updates": ("mor_writes.py", "--index", "BUCKET", "--updates", "2000000"),
    "planning": ("planning.py",),
    "metadata-commit": ("metadata_commit.py",),
    "point-lookups": ("point_lookups.py",),
    "tagging": ("tagging.py",),
    "writers": ("writers.py",),
    "data_skipping": ("data_skipping.py",),
    "spikes": ("spikes.py", "--repeat", "3"),
    "neighbours": ("neighbours.py",),
    "startup": ("startup.py",),
    "headline": ("headline.py",),
    "headline-bloom": ("headline.py", "--index", "BLOOM", "--repeat", "1"),
    "headline-global-simple": ("headline.py", "--index", "GLOBAL_SIMPLE", "--repeat", "1"),
    "headline-global-bloom": ("headline.py", "--index", "GLOBAL_BLOOM", "--repeat", "1"),
    "headline-100-columns": ("headline.py", "--columns", "100", "--rows", "300000", "--repeat", "1"),
    "headline-s3": ("headline.py", "--store", "s3", "--rows", "300000", "--repeat", "1"),
}


@nox.session
def bench(session: nox.Session) -> None:
    """Benchmarks at full size; names after `--` choose some of them.

    A table of each is printed and written to benchmarks/results, with the machine.
    """
    chosen = list(session.posargs) or list(BENCHMARKS)
    if set(chosen) - set(BENCHMARKS):
        session.error(f"benchmarks are {', '.join(BENCHMARKS)}")
    _install(session, "hudi-spark", PYSPARKS["3.5"], *versions.group("benchmarks"))
    for name in chosen:
        script, *arguments = BENCHMARKS[name]
        more = ["--name", name] if script == "headline.py" else []
        session.run("python", f"benchmarks/macro/{script}", *arguments, *more, "--out", "benchmarks/results")


@nox.session(venv_backend="none")
def lock(session: nox.Session) -> None:
    """The newest versions of all that sessions install, in requirements/*.txt; `-- --keep` changes what it must."""
    session.run(sys.executable, "tools/lock.py", "--refresh", *session.posargs)


@nox.session
def changelog(session: nox.Session) -> None:
    """The fragments in each package's `changes/`, as a release would have them; `-- VERSION` writes the changelogs."""
    session.install(*CONSTRAINTS, *versions.group("changelog"))
    for package in PACKAGES:
        given = ("--config", "pyproject.toml", "--dir", f"packages/{package}", "--name", package)
        written = (
            ("--yes", "--version", *session.posargs) if session.posargs else ("--draft", "--version", "next")
        )
        if any((ROOT / "packages" / package / "changes").glob("*.md")):
            session.run("towncrier", "build", *given, *written)


@nox.session
def demo(session: nox.Session) -> None:
    """The main job on the flights of 2013, with PySpark."""
    _install(session, "hudi-spark", PYSPARKS["4"], *versions.group("demo"))
    env = {"SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")}
    session.run("python", "examples/flights.py", *session.posargs, env=env)
