"""The module that Spark 4 looks through for data sources."""

import subprocess
import sys
import textwrap

import pytest

from hudi_spark import compat


@pytest.mark.skipif(not compat.HAS_DATA_SOURCES, reason="PySpark 3.5 has no Python data sources")
def test_looking_for_the_source_imports_nothing_heavy():
    script = """
        import sys, pyspark_hudi
        assert pyspark_hudi.DefaultSource.name() == "hudi"
        assert not [m for m in sys.modules if m.startswith(("hudi_spark", "hudi_timeline", "fsspec"))]
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
