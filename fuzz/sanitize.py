"""The compiled modules under AddressSanitizer and UndefinedBehaviorSanitizer: parsers' tests, sweeps, fuzz inputs.

    python fuzz/sanitize.py [--mutations 2000] [--targets avro_record ...] [--tests packages/... ...]

Copies the packages' sources, compiles every Cython module there with gcc's sanitizers, and runs Python with its
runtime loaded first.  Undefined behaviour ends the process as a bad access does, so exit code 0 means no finding.
Linux with gcc only.  Leaks are not looked for: an interpreter that ends leaves much behind.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
FOLDER = ROOT / ".cache" / "asan"
PACKAGES = ("hudi-format", "hudi-index", "hudi-timeline")
FLAGS = (
    "-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer "
    # Cython compares pointers to types it has not seen, and calls through them.
    "-fno-sanitize=vptr -Wno-unused-function"
)
# The parsers' own tests; those of whole tables reach no other bytes.
TESTS = (
    "packages/hudi-format/tests/avro",
    "packages/hudi-format/tests/log",
    "packages/hudi-format/tests/hfile",
    "packages/hudi-format/tests/scenarios",
    "packages/hudi-format/tests/test_commit_json.py",
    "packages/hudi-format/tests/merge/test_key_index.py",
    "packages/hudi-format/tests/merge/test_spilled_records.py",
    "packages/hudi-index/tests/metadata_table/test_merger.py",
    "packages/hudi-format/tests/merge/test_overlay.py",
    "packages/hudi-format/tests/parquet/test_row_groups.py",
    "packages/hudi-format/tests/parquet/test_footer.py",
    "packages/hudi-format/tests/parquet/test_utf8.py",
    "packages/hudi-format/tests/file_slice/test_reader.py",
    "packages/hudi-format/tests/inspect/test_files.py",
    "packages/hudi-index/tests",
    "packages/hudi-timeline/tests/scenarios/test_repeated_text.py",
)


def build() -> list[Path]:
    """Copy the sources and compile; the folders for PYTHONPATH.  What has not changed is not compiled again."""
    import numpy

    paths = []
    stale = []
    for package in PACKAGES:
        source, target = ROOT / "packages" / package / "src", FOLDER / package
        for file in sorted(source.rglob("*")):
            if file.suffix not in {".py", ".pyx", ".pxd"}:
                continue
            copy = target / file.relative_to(source)
            if not copy.is_file() or copy.read_bytes() != file.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
                for built in copy.parent.glob(f"{copy.stem}.*.so"):
                    built.unlink()
                if file.suffix == ".pxd":  # whoever includes it
                    for built in copy.parent.rglob("*.so"):
                        built.unlink()
        stale += [p for p in sorted(target.rglob("*.pyx")) if not list(p.parent.glob(f"{p.stem}.*.so"))]
        paths.append(target)
    environment = {
        **os.environ,
        "CFLAGS": f"{FLAGS} -I{numpy.get_include()}",
        "LDFLAGS": "-fsanitize=address,undefined",
    }

    def compile_one(path: Path) -> None:
        command = [sys.executable, "-m", "Cython.Build.Cythonize", "-q", "-3", "-i", str(path)]
        subprocess.run(command, check=True, env=environment)

    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        list(pool.map(compile_one, stale))
    return paths


def runtime() -> str:
    """Libraries to load before the interpreter."""
    found = []
    for name in ("libasan.so", "libubsan.so"):
        path = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        found.append(str(Path(path.stdout.strip()).resolve()))
    # The interpreter is not linked with C++, whose exceptions Arrow throws: asan must find the real thrower.
    path = subprocess.run(
        ["gcc", "-print-file-name=libstdc++.so.6"], capture_output=True, text=True, check=True
    )
    return ":".join([*found, path.stdout.strip()])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mutations", type=int, default=2000, help="of each fuzz target")
    parser.add_argument("--targets", nargs="*", default=[], help="fuzz targets; all of them by default")
    parser.add_argument("--tests", nargs="*", default=list(TESTS), help="instead of all parsers' tests")
    chosen = parser.parse_args()
    begun = time.monotonic()
    paths = build()
    print(f"compiled, {time.monotonic() - begun:.0f} s", flush=True)
    reports = FOLDER / "report"
    for old in FOLDER.glob("report.*"):
        old.unlink()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "LD_PRELOAD": runtime(),
        # pytest keeps what a test prints to itself, and dies with it.
        "ASAN_OPTIONS": f"detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096:log_path={reports}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:halt_on_error=1:log_path={reports}",
        "PYTHONMALLOC": "malloc",  # Python's own allocator would hide what lies beside an object
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(FOLDER / "hypothesis"),
    }
    here = [sys.executable, "-c", "import hudi_format.avro._decode as m; print(m.__file__)"]
    module = subprocess.run(here, env=environment, capture_output=True, text=True, check=False, cwd=FOLDER)
    if str(FOLDER) not in module.stdout:
        print(f"the compiled modules are not those with sanitizers: {module.stdout}{module.stderr}")
        return 2
    commands = []
    if chosen.mutations:
        commands.append(
            [
                sys.executable,
                str(HERE / "run.py"),
                *chosen.targets,
                "--replay",
                "--mutations",
                str(chosen.mutations),
            ]
        )
    if chosen.tests:
        # Without pytest's capture, which would keep the report of undefined behaviour to itself.
        commands.append([sys.executable, "-m", "pytest", "-q", "-x", "-s", "-p", "no:cacheprovider",
                         "--timeout=1200", *chosen.tests])  # fmt: skip
    code = 0
    for command in commands:
        ended = subprocess.run(command, env=environment, cwd=ROOT, check=False)
        print(
            f"{Path(command[1]).name}: exit code {ended.returncode}, {time.monotonic() - begun:.0f} s",
            flush=True,
        )
        code = code or ended.returncode
    for report in sorted(FOLDER.glob("report.*")):
        print(report.read_text())
        code = code or 1
    return 1 if code else 0


if __name__ == "__main__":
    sys.exit(main())
