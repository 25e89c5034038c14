"""Validators and rules on every operation: what they see, what they refuse, and the table byte for byte as before."""

import pickle
import sys

import pytest
from bad_input import OPTIONS, content, rows
from write_operations import OPERATIONS, incoming

from hudi_format.errors import ValidationError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

P = "hoodie.precommit.validators"
# Keys before (a, c in c0; b, d in c1), and after each operation.
AFTER = {
    "insert": "aabcdx", "upsert": "abcdx", "bulk_insert": "aabcdx", "stream": "aabcdx", "insert_overwrite": "abdx",
    "insert_overwrite_table": "ax", "delete": "bcd", "delete_filter": "bcd", "delete_partition": "bd",
}  # fmt: skip


def keys(scan):
    return "".join(sorted(scan.to_arrow().column("id").to_pylist()))


@pytest.mark.req("NEW-33", "MB-06")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.sampled(3)
def test_a_function_sees_the_change_and_its_no_leaves_every_byte_as_it_was(path, table, operation):
    before, seen = content(path), {}

    def check(change):
        seen.update(
            before=keys(change.before(["id"])),
            after=keys(change.after(["id"])),
            rows=keys(change.rows(["id"])),
            deleted="".join(sorted(change.deleted().column(0).to_pylist())),
            operation=change.operation,
        )
        return False

    with pytest.raises(ValidationError, match="validator check refused the write") as e:
        OPERATIONS[operation](table, validators=[check])
    assert content(path) == before
    assert not (path / "new").exists()
    assert seen["before"] == "abcd"
    assert seen["after"] == AFTER[operation]
    assert seen["rows"] == ("" if operation.startswith("delete") else "ax")
    gone = {"insert_overwrite": "c", "insert_overwrite_table": "bcd", "delete": "a", "delete_filter": "a"}
    assert seen["deleted"] == {**gone, "delete_partition": "ac"}.get(operation, "")
    assert e.value.code == "HUDI-E0508"
    assert e.value.details["rule"] == "check"
    # The same without the validator goes through.
    result = OPERATIONS[operation](table)
    assert keys(table.read(["id"])) == AFTER[operation]
    assert result.instant


def bad_rows(change):
    return change.rows(["id", "_hoodie_record_key", "fare"], "fare < 0").to_arrow()


@pytest.mark.req("NEW-33")
@pytest.mark.parametrize(
    ("answer", "good", "says"),
    [
        (lambda c: None, True, ""),
        (lambda c: True, True, ""),
        (lambda c: "", True, ""),
        (lambda c: c.rows(filter="fare > 100"), True, ""),
        (lambda c: False, False, "refused"),
        (lambda c: "too cheap", False, "too cheap"),
        (bad_rows, False, "found 1 bad rows, with keys a"),
        (lambda c: bad_rows(c).to_batches()[0], False, "1 bad rows"),
        (lambda c: 7, False, "returned a int"),
        (lambda c: 1 / 0, False, "ZeroDivisionError"),
    ],
)
def test_what_functions_say(path, table, answer, good, says):
    before = content(path)
    if good:
        assert table.upsert(incoming(), validators=[answer]).updated == 1
    else:
        with pytest.raises(ValidationError, match=says) as e:
            table.upsert(incoming(), validators=[answer])
        assert pickle.loads(pickle.dumps(e.value)).details == e.value.details
        assert content(path) == before


def named_check(change):
    return change.after().count() < 5


def test_a_function_by_its_name_and_validators_of_a_first_write(monkeypatch, tmp_path):
    module = type(sys)("checks_of_a_job")
    module.small = named_check
    monkeypatch.setitem(sys.modules, "checks_of_a_job", module)
    path = tmp_path / "new"
    storage = open_storage(str(path))
    options = {**OPTIONS, P: "checks_of_a_job:small"}
    with pytest.raises(ValidationError, match="named_check"):
        execute(LocalEngine(), storage, rows(*"abcdef"), options)
    assert not content(path)
    assert execute(LocalEngine(), storage, rows(*"abc"), options).inserted == 3
    with pytest.raises(ValidationError, match="named_check"):
        execute(LocalEngine(), storage, rows(*"abcdef"), options, mode="overwrite")
    assert keys(HudiTable.open(str(path)).read(["id"])) == "abc"
