"""Hadoop's options of stores, as storage options."""

from __future__ import annotations

from hudi_format.storage.hadoop_options import hadoop_options, storage_options_of, without_hadoop_options


def test_hadoops_options_of_s3():
    given = {
        "hoodie.table.name": "t",
        "spark.hadoop.fs.s3a.access.key": "session",
        "fs.s3a.access.key": "own",
        "fs.s3a.secret.key": "s",
        "fs.s3a.session.token": "tok",
        "fs.s3a.endpoint": "minio:9000",
        "fs.s3a.endpoint.region": "eu-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.server-side-encryption-algorithm": "SSE-KMS",
        "fs.s3a.server-side-encryption.key": "arn",
        "fs.s3a.proxy.host": "proxy",
        "fs.s3a.proxy.port": "3128",
        "fs.s3a.bucket.other.endpoint": "elsewhere",
        "fs.s3a.threads.max": "64",
    }
    assert storage_options_of("s3a://b/t", given) == {
        "key": "own",
        "secret": "s",
        "token": "tok",
        "s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "arn"},
        "client_kwargs": {"endpoint_url": "https://minio:9000", "region_name": "eu-1"},
        "config_kwargs": {
            "s3": {"addressing_style": "path"},
            "proxies": {"http": "http://proxy:3128", "https": "http://proxy:3128"},
        },
    }
    plain = {"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false"}
    assert storage_options_of("s3://b/t", plain) == {
        "use_ssl": False,
        "client_kwargs": {"endpoint_url": "http://minio:9000"},
    }
    anonymous = {
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    }
    assert storage_options_of("s3://b/t", anonymous) == {"anon": True}
    assert storage_options_of(
        "s3n://b/t", {"fs.s3n.awsAccessKeyId": "k", "fs.s3n.awsSecretAccessKey": "s"}
    ) == {
        "key": "k",
        "secret": "s",
    }
    assert storage_options_of("gs://b/t", given) == {}
    assert set(hadoop_options(given)).isdisjoint(without_hadoop_options(given))
    assert without_hadoop_options(given) == {"hoodie.table.name": "t"}


def test_hadoops_options_of_azure_and_google():
    host = "acc.dfs.core.windows.net"
    given = {
        f"fs.azure.account.key.{host}": "k",
        "fs.azure.account.key.other.dfs.core.windows.net": "no",
        "fs.azure.account.oauth2.client.id": "id",
        f"fs.azure.account.oauth2.client.secret.{host}": "s",
        "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
    }
    assert storage_options_of(f"abfss://c@{host}/t", given) == {
        "account_name": "acc",
        "account_key": "k",
        "client_id": "id",
        "client_secret": "s",
        "tenant_id": "tenant",
    }
    google = {"fs.gs.auth.service.account.json.keyfile": "/key.json", "fs.gs.project.id": "p"}
    assert storage_options_of("gs://b/t", google) == {"token": "/key.json", "project": "p"}
