"""Storage options by the names of other libraries."""

import pytest

from hudi_format.errors import ConflictingOptionError, InvalidOptionError, OptionError
from hudi_format.storage.open import open_storage
from hudi_format.storage.other_names import by_fsspec_names

S3 = {
    "key": "k",
    "secret": "s",
    "token": "t",
    "client_kwargs": {"region_name": "eu-1", "endpoint_url": "http://localhost:1"},
    "anon": False,
    "config_kwargs": {"s3": {"addressing_style": "path"}},
}


@pytest.mark.parametrize(
    "given",
    [
        {
            "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t", "AWS_REGION": "eu-1",
            "AWS_ENDPOINT_URL": "http://localhost:1", "AWS_SKIP_SIGNATURE": "false", "AWS_ALLOW_HTTP": "true",
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        },
        {
            "aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_session_token": "t", "aws_region": "eu-1",
            "aws_endpoint": "http://localhost:1", "aws_skip_signature": False, "allow_http": True,
            "aws_virtual_hosted_style_request": 0,
        },
        {
            "s3.access-key-id": "k", "s3.secret-access-key": "s", "s3.session-token": "t", "s3.region": "eu-1",
            "s3.endpoint": "http://localhost:1", "s3.anonymous": "False", "s3.force-virtual-addressing": "False",
        },
        {
            "access_key_id": "k", "secret_access_key": "s", "session_token": "t", "region": "eu-1",
            "client_kwargs": {"endpoint_url": "http://localhost:1"}, "skip_signature": "0",
            "config_kwargs": {"s3": {"addressing_style": "path"}},
        },
        S3,
    ],
    ids=["environment", "object_store", "pyiceberg", "bare", "own"],
)  # fmt: skip
def test_names_of_other_libraries_are_fsspecs(given):
    before = {k: dict(v) if isinstance(v, dict) else v for k, v in given.items()}
    assert by_fsspec_names("s3://b/t", given) == S3
    assert given == before, "what was given is left as it is"


def test_names_of_azure_and_google_are_fsspecs():
    azure = {"AZURE_STORAGE_ACCOUNT_NAME": "a", "adls.account-key": "k", "azure_tenant_id": "t"}
    want = {"account_name": "a", "account_key": "k", "tenant_id": "t"}
    assert by_fsspec_names("abfss://c@a.dfs.core.windows.net/t", azure) == want
    google = {"GOOGLE_SERVICE_ACCOUNT": "/key.json", "gcs.project-id": "p"}
    assert by_fsspec_names("gs://b/t", google) == {"token": "/key.json", "project": "p"}


def test_what_belongs_to_another_store_stays_as_it_is():
    given = {"AWS_ACCESS_KEY_ID": "k", "region": "x"}
    assert by_fsspec_names("memory://t", given) == given
    assert by_fsspec_names("gs://b/t", given) == given
    with pytest.raises(OptionError, match="AWS_NO_SUCH"):
        open_storage("s3://b/t", {"AWS_NO_SUCH": "x"})


@pytest.mark.parametrize(
    "given",
    [
        {"AWS_ACCESS_KEY_ID": "secret-1", "key": "secret-2"},
        {"AWS_ACCESS_KEY_ID": "secret-1", "s3.access-key-id": "secret-2"},
        {"AWS_REGION": "secret-1", "client_kwargs": {"region_name": "secret-2"}},
    ],
)
def test_one_thing_that_is_given_twice_is_refused_without_its_values(given):
    with pytest.raises(ConflictingOptionError) as e:
        by_fsspec_names("s3://b/t", given)
    assert "secret" not in str(e.value)
    assert by_fsspec_names("s3://b/t", dict.fromkeys(list(given)[:1], "x") | {"anon": True})["anon"] is True


def test_a_flag_is_true_or_false():
    with pytest.raises(InvalidOptionError, match="AWS_SKIP_SIGNATURE"):
        by_fsspec_names("s3://b/t", {"AWS_SKIP_SIGNATURE": "maybe"})


def test_a_storage_opens_by_them():
    storage = open_storage(
        "s3://b/t", {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu-1"}
    )
    assert storage.uri == "s3://b/t"
