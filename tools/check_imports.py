"""Every module of an installed package can be imported, compiled ones too: `check_imports.py PACKAGE`.

To be run with `python -I` in an environment that holds the package and those below it, and nothing of this checkout.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys

# Modules that are imported by those who have what they need, which a package itself does not.
NEEDS = {"hudi_timeline.testing.fixtures": "pytest"}


def main(package: str) -> None:
    top = importlib.import_module(package)
    names = [module.name for module in pkgutil.walk_packages(top.__path__, f"{package}.")]
    names = [n for n in names if n not in NEEDS or importlib.util.find_spec(NEEDS[n])]
    for name in names:
        importlib.import_module(name)
    print(f"{package} {top.__version__}: {len(names)} modules imported")


if __name__ == "__main__":
    main(sys.argv[1])
