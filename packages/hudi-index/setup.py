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


EXTENSIONS = (
    "hudi_index.bloom._base64",
    "hudi_index.bloom._filter",
    "hudi_index.hashing._crc",
    "hudi_index.hashing._java",
    "hudi_index.hashing._ring",
    "hudi_index.hashing._xxhash",
)


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
