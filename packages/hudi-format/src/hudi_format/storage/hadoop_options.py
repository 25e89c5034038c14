"""Hadoop's storage options (`fs.s3a.*` and others) as options of fsspec's packages.

Source: "Hadoop-AWS module" and "Hadoop Azure support" of Hadoop 3.3; the parameters of s3fs, gcsfs and adlfs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hudi_format.errors import ConflictingOptionError, InvalidOptionError, UnsupportedError
from hudi_format.storage.schemes import root_of, scheme_of

PREFIX = "fs."
_SPARK = "spark.hadoop."
_S3A = "fs.s3a."
_BUCKET = "fs.s3a.bucket."

# What would reach the store in another way than asked, if it were passed over.
_REFUSED = {
    "assumed.role.arn": "set AWS_ROLE_ARN, or give the role's own temporary credentials",
    "delegation.tokens.enabled": "give credentials by fs.s3a.access.key and fs.s3a.secret.key",
    "encryption.client.side": "omit it",
}
_ENCRYPTION = {"AES256": "AES256", "SSE-S3": "AES256", "SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}


def hadoop_options(options: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's options among a call's options; `spark.hadoop.` keys come second."""
    own = {k: v for k, v in options.items() if k.startswith(PREFIX)}
    session = {k.removeprefix(_SPARK): v for k, v in options.items() if k.startswith(_SPARK + PREFIX)}
    return {**session, **own}


def without_hadoop_options(options: Mapping[str, str]) -> dict[str, str]:
    """The other options.

    Hadoop's hold secrets, and mean nothing once the storage is open.
    """
    return {k: v for k, v in options.items() if not k.startswith((PREFIX, _SPARK + PREFIX))}


def storage_options_of(uri: str, options: Mapping[str, str]) -> dict[str, Any]:
    """fsspec options for a URL; empty where no option concerns its store.

    Raises:
        InvalidOptionError, UnsupportedError: values never appear in the message where they may be secret.
    """
    given = hadoop_options(options)
    if not given:
        return {}
    name = scheme_of(uri).name
    if name == "s3":
        return _s3(uri, given)
    if name == "abfs":
        return _azure(uri, given)
    if name == "gs":
        return _google(given)
    return {}


def _s3(uri: str, given: Mapping[str, str]) -> dict[str, Any]:
    bucket = f"{_BUCKET}{root_of(uri)}."
    values = {k.removeprefix(_S3A): v for k, v in given.items() if k.startswith(_S3A)}
    values.update({k.removeprefix(bucket): v for k, v in given.items() if k.startswith(bucket)})
    for old, new in (("awsAccessKeyId", "access.key"), ("awsSecretAccessKey", "secret.key")):
        for scheme in ("fs.s3.", "fs.s3n."):
            if scheme + old in given:
                values.setdefault(new, given[scheme + old])
    out: dict[str, Any] = {}
    client: dict[str, Any] = {}
    config: dict[str, Any] = {}
    for key, name in (("access.key", "key"), ("secret.key", "secret"), ("session.token", "token")):
        if values.get(key):
            out[name] = values[key]
    ssl = _flag(values, "connection.ssl.enabled", True)
    if values.get("endpoint"):
        endpoint = values["endpoint"].strip()
        client["endpoint_url"] = endpoint if "://" in endpoint else f"http{'s' if ssl else ''}://{endpoint}"
    if not ssl:
        out["use_ssl"] = False
    if values.get("endpoint.region"):
        client["region_name"] = values["endpoint.region"].strip()
    if _flag(values, "path.style.access", False):
        config["s3"] = {"addressing_style": "path"}
    if "AnonymousAWSCredentialsProvider" in values.get("aws.credentials.provider", ""):
        out["anon"] = True
    if values.get("proxy.host"):
        host = values["proxy.host"] + (f":{values['proxy.port']}" if values.get("proxy.port") else "")
        config["proxies"] = {"http": f"http://{host}", "https": f"http://{host}"}
    _encryption(values, out)
    for key, way in _REFUSED.items():
        if values.get(key) and values[key].strip().lower() != "false":
            raise UnsupportedError(
                f"{_S3A}{key} is not supported",
                remedy=f"{way}.",
                option=_S3A + key,
            )
    return {
        **out,
        **({"client_kwargs": client} if client else {}),
        **({"config_kwargs": config} if config else {}),
    }


def _encryption(values: Mapping[str, str], out: dict[str, Any]) -> None:
    kind = values.get("encryption.algorithm") or values.get("server-side-encryption-algorithm") or ""
    if not kind.strip():
        return
    known = _ENCRYPTION.get(kind.strip().upper())
    if known is None:
        raise UnsupportedError(
            f"{_S3A}encryption.algorithm={kind} is not supported",
            remedy=f"use one of {', '.join(_ENCRYPTION)}.",
            option=f"{_S3A}encryption.algorithm",
        )
    extra = {"ServerSideEncryption": known}
    key = values.get("encryption.key") or values.get("server-side-encryption.key")
    if key and known != "AES256":
        extra["SSEKMSKeyId"] = key
    out["s3_additional_kwargs"] = extra


def _azure(uri: str, given: Mapping[str, str]) -> dict[str, Any]:
    host = uri.partition("://")[2].partition("/")[0].rpartition("@")[2]
    account = host.partition(".")[0]
    out: dict[str, Any] = {"account_name": account} if "." in host else {}

    def value(name: str) -> str | None:
        return given.get(f"fs.azure.{name}.{host}") or given.get(f"fs.azure.{name}")

    tenant = (value("account.oauth2.client.endpoint") or "").partition("://")[2].split("/")
    found = {
        "account_key": value("account.key"),
        "sas_token": value("sas.fixed.token"),
        "client_id": value("account.oauth2.client.id"),
        "client_secret": value("account.oauth2.client.secret"),
        "tenant_id": tenant[1] if len(tenant) > 1 else None,
    }
    return {**out, **{k: v for k, v in found.items() if v}}


def _google(given: Mapping[str, str]) -> dict[str, Any]:
    names: tuple[tuple[str, str, Callable[[str], str]], ...] = (
        ("fs.gs.auth.service.account.json.keyfile", "token", str),
        ("fs.gs.project.id", "project", str),
        ("fs.gs.storage.root.url", "endpoint_url", lambda url: url.rstrip("/")),
    )
    return {name: make(given[key]) for key, name, make in names if given.get(key)}


def _flag(values: Mapping[str, str], key: str, default: bool) -> bool:
    text = values.get(key, "").strip().lower()
    if text not in ("", "true", "false"):
        raise InvalidOptionError(
            f"{_S3A}{key}={text!r} is neither true nor false", option=_S3A + key, remedy="use true or false."
        )
    return default if not text else text == "true"


def with_given(translated: Mapping[str, Any], given: Mapping[str, Any], uri: str) -> dict[str, Any]:
    """Both sets of options merged.

    Raises:
        ConflictingOptionError: they say different things; no value is shown.
    """
    out = dict(translated)
    for name, value in given.items():
        known = out.get(name)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            out[name] = with_given(known, value, uri)
        elif known is not None and known != value:
            raise ConflictingOptionError(
                f"storage_options[{name!r}] contradicts Hadoop's fs options",
                table=uri,
                remedy="give only one of them.",
                option=name,
            )
        else:
            out[name] = value
    return out
