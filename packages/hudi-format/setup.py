"""C extensions only; everything declarative is in pyproject.toml."""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ABI3 = os.environ.get("HUDI_ABI3") == "1"
MACROS = [("CYTHON_LIMITED_API", "1"), ("Py_LIMITED_API", "0x030B0000")] if ABI3 else []
LEVEL = [] if "-O" in os.environ.get("CFLAGS", "") else ["-O3"]  # a level of the caller's own stands
# Errors of themselves from GCC 14 and Clang 16 on: what an older one builds, they build too.
STRICT = ["-Werror=incompatible-pointer-types", "-Werror=int-conversion"]


def extension(name: str) -> Extension:
    return Extension(
        name,
        ["src/" + name.replace(".", "/") + ".pyx"],
        define_macros=MACROS,
        py_limited_api=ABI3,
        extra_compile_args=["/O2"] if os.name == "nt" else [*LEVEL, "-g0", *STRICT],
    )


EXTENSIONS = [
    "hudi_format._commit_json",
    "hudi_format.avro._decode",
    "hudi_format.avro._encode",
    "hudi_format.hfile._block",
    "hudi_format.hfile._checksum",
    "hudi_format.hfile._encode",
    "hudi_format.hfile._index",
    "hudi_format.hfile._lz4",
    "hudi_format.log._delete",
    "hudi_format.log._scan",
    "hudi_format.log._values",
    "hudi_format.merge._keymerge",
    "hudi_format.merge._overlay",
    "hudi_format.parquet._chunks",
    "hudi_format.parquet._entries",
    "hudi_format.parquet._fields",
    "hudi_format.parquet._texts",
    "hudi_format.parquet._utf8",
]


class ParallelBuild(build_ext):
    """Translates and compiles on all cores; left alone, setuptools takes one module after the other."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count() or 1

    def build_extensions(self) -> None:
        translated = {e.name: e.sources for e in cythonize(self.extensions, nthreads=self.parallel)}
        for module in self.extensions:
            module.sources = translated[module.name]
        super().build_extensions()


if __name__ == "__main__":  # where processes are not forked, each one imports this file
    setup(
        ext_modules=[extension(name) for name in EXTENSIONS],
        cmdclass={"build_ext": ParallelBuild},
        options={"bdist_wheel": {"py_limited_api": "cp311"}} if ABI3 else {},
    )
