"""Names of a package that are imported at their first use."""

import subprocess
import sys

import pytest

import hudi_format
from hudi_format._lazy import CompiledParts, at_first_use


def test_a_name_comes_from_its_home_in_the_package_or_to_the_left_of_it():
    find, names = at_first_use(
        "hudi_format", {"Storage": "storage.protocol", "HudiError": "hudi_format.errors"}
    )
    assert find("Storage").__module__ == "hudi_format.storage.protocol"
    assert find("HudiError") is hudi_format.HudiError
    assert {"Storage", "HudiError", "__name__"} <= set(names())
    assert names() == sorted(names())


def test_a_name_that_is_not_there_is_an_attribute_error():
    find, _ = at_first_use("hudi_format", {})
    with pytest.raises(AttributeError, match="'hudi_format' has no attribute 'nope'"):
        find("nope")


def test_a_name_that_is_elsewhere_is_an_attribute_error_that_says_where():
    find, names = at_first_use("hudi_format", {}, {"Table": "use hudi_timeline.HudiTable"})
    with pytest.raises(AttributeError, match="'hudi_format' has no attribute 'Table': use hudi_timeline"):
        find("Table")
    assert "Table" not in names()


def test_what_is_not_asked_for_is_not_imported():
    code = (
        "import sys, hudi_format\n"
        "assert not any(m.startswith('hudi_format.merge') or m == 'hudi_format.model' for m in sys.modules)\n"
        "hudi_format.BaseFile\n"
        "assert 'hudi_format.model' in sys.modules\n"
        "assert 'pyarrow' not in sys.modules"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_the_root_of_a_package_imports_no_module_that_takes_longer_than_itself():
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; before = set(sys.modules)\n"
        "import hudi_format\n"
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    # Without site, whose imports would hide those of the package.
    ended = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    imported = set(ended.stdout.split())
    assert "hudi_format" in imported
    assert imported.isdisjoint({"collections", "contextlib", "enum", "functools", "pyarrow", "re", "typing"})


@pytest.mark.parametrize("package", ["hudi_format", "hudi_index"])
def test_a_part_that_was_not_compiled_is_an_import_error_that_says_how_to_build_it(package):
    folder = package.replace("_", "-")
    # hudi_index may not be there, where hudi_format is tested.
    missing = ImportError(f"cannot import name '_parts' from '{package}'", name=package)
    told = f"cannot import name '_parts' from '{package}'.* cd packages/{folder} && python setup"
    with pytest.raises(ImportError, match=told) as e, CompiledParts():
        raise missing
    assert e.value.name == package
