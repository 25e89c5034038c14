"""Which store a URL means, and the package that it needs."""

from __future__ import annotations

import importlib.util

import pytest

from hudi_format.errors import UnsupportedError
from hudi_format.storage.open import normalised_path, open_storage
from hudi_format.storage.schemes import normalised, root_of, scheme_of


@pytest.mark.req("SS-05")
@pytest.mark.parametrize(
    ("uri", "normal", "root"),
    [
        ("s3a://b/t/", "s3://b/t", "b"),
        ("s3n://b/t", "s3://b/t", "b"),
        ("gcs://b/a%20b", "gs://b/a%20b", "b"),
        ("abfss://c@acc.dfs.core.windows.net/t", "abfs://c@acc.dfs.core.windows.net/t", "c"),
        ("wasbs://c@acc.blob.core.windows.net/t", "abfs://c@acc.blob.core.windows.net/t", "c"),
        ("hdfs://nn:8020/t", "hdfs://nn:8020/t", "nn:8020"),
        ("sftp://me:secret@host/t", "sftp://me:secret@host/t", "host"),
        ("memory://x", "memory://x", "x"),
    ],
)
def test_all_names_of_a_store_become_one(uri, normal, root):
    assert normalised(uri) == normal
    assert root_of(uri) == root
    assert normalised_path(uri) == normal


@pytest.mark.parametrize(
    ("uri", "package"),
    [("gs://b/t", "gcsfs"), ("abfss://c@a.dfs.core.windows.net/t", "adlfs"), ("sftp://h/t", "paramiko")],
)
def test_a_missing_package_is_named(uri, package):
    if importlib.util.find_spec(package) is not None:
        assert scheme_of(uri).package == package
        return
    with pytest.raises(UnsupportedError) as e:
        open_storage(uri)
    assert f"pip install {package}" in e.value.remedy
    assert "\n" not in str(e.value)
