"""Every module of an installed package can be imported, compiled ones too: `check_imports.py PACKAGE`.

To be run with `python -I` in an environment that holds the package and those below it, and nothing of this checkout.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys


def main(package: str) -> None:
    top = importlib.import_module(package)
    names = [module.name for module in pkgutil.walk_packages(top.__path__, f"{package}.")]
    for name in names:
        importlib.import_module(name)
    print(f"{package} {top.__version__}: {len(names)} modules imported")


if __name__ == "__main__":
    main(sys.argv[1])
