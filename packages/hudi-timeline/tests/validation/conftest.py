"""The table that validators and rules judge writes of."""

import pytest
from bad_input import make

from hudi_timeline import HudiTable


@pytest.fixture
def path(tmp_path):
    make(tmp_path / "t")
    return tmp_path / "t"


@pytest.fixture
def table(path):
    return HudiTable.open(str(path))
