"""Storage options by the names of other libraries, as options of fsspec's packages.

Source: configuration keys of Rust's object_store, which delta-rs, hudi-rs and Polars take (`AWS_ACCESS_KEY_ID`, in
either case, some also without `AWS_`), and properties of PyIceberg's FileIO (`s3.access-key-id`, `adls.account-name`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_format.errors import ConflictingOptionError, InvalidOptionError
from hudi_format.storage.schemes import scheme_of

_REGION, _ENDPOINT = ("client_kwargs", "region_name"), ("client_kwargs", "endpoint_url")
_STYLE = ("config_kwargs", "s3", "addressing_style")
_ANONYMOUS = ("anon",)
_HTTP: tuple[str, ...] = ()  # fsspec goes by the scheme of the endpoint
_FLAGS: dict[tuple[str, ...], dict[bool, object]] = {
    _ANONYMOUS: {True: True, False: False},
    _STYLE: {True: "virtual", False: "path"},
    _HTTP: {},
}

# Names in lower case, with "_" for other marks and without the prefixes below; where they stand in fsspec's options.
_S3: dict[str, tuple[str, ...]] = {
    "access_key_id": ("key",), "secret_access_key": ("secret",), "session_token": ("token",), "region": _REGION,
    "default_region": _REGION, "endpoint": _ENDPOINT, "endpoint_url": _ENDPOINT, "endpoint_url_s3": _ENDPOINT,
    "skip_signature": _ANONYMOUS, "anonymous": _ANONYMOUS, "virtual_hosted_style_request": _STYLE,
    "force_virtual_addressing": _STYLE, "allow_http": _HTTP,
}  # fmt: skip
_GOOGLE: dict[str, tuple[str, ...]] = {
    "service_account": ("token",), "service_account_path": ("token",), "application_credentials": ("token",),
    "oauth2_token": ("token",), "project_id": ("project",),
}  # fmt: skip
_AZURE: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in (
        "account_name", "account_key", "sas_token", "client_id", "client_secret", "tenant_id", "connection_string",
    )},
    "access_key": ("account_key",), "sas_key": ("sas_token",),
}  # fmt: skip
_STORES = {
    "s3": (_S3, ("aws_", "s3.")),
    "gs": (_GOOGLE, ("google_", "gcs.")),
    "abfs": (_AZURE, ("azure_storage_", "azure_", "adls.")),
}
# Names of object_store that have no prefix, and that fsspec's packages have none of.
_BARE = ("access_key_id", "secret_access_key", "session_token", "region", "skip_signature", "allow_http")


def by_fsspec_names(uri: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Storage options by fsspec's names, of any names; what is of no other library stays.

    Raises:
        ConflictingOptionError: one thing is given twice, with different values; no value is shown.
        InvalidOptionError: a flag that is neither true nor false.
    """
    names, prefixes = _STORES.get(scheme_of(uri).name, ({}, ()))
    places = {key: place for key in given if (place := _place(key, names, prefixes)) is not None}
    out = {key: _copy(value) for key, value in given.items() if key not in places}
    for key, place in places.items():
        value = given[key]
        if place in _FLAGS:
            value = _FLAGS[place].get(_flag(key, value, uri))
        if place:
            _put(out, place, value, key, uri)
    return out


def _place(
    key: object, names: Mapping[str, tuple[str, ...]], prefixes: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Where fsspec's options have what another library's name says; None for names that are none of these."""
    lower = str(key).lower()
    prefix = next((p for p in prefixes if lower.startswith(p)), None)
    if prefix is None:
        return names.get(lower) if lower in _BARE else None
    return names.get(lower.removeprefix(prefix).replace("-", "_").replace(".", "_"))


def _copy(value: Any) -> Any:
    return {k: _copy(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def _put(out: dict[str, Any], place: tuple[str, ...], value: object, key: str, uri: str) -> None:
    *outer, last = place
    for name in outer:
        out = out.setdefault(name, {})
    if out.get(last, value) != value:
        raise ConflictingOptionError(
            f"the storage option {key} contradicts another one for the same thing",
            table=uri,
            remedy="give only one of them.",
            option=key,
        )
    out[last] = value


def _flag(key: str, value: object, uri: str) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false", "1", "0"):
        raise InvalidOptionError(
            f"the storage option {key} is neither true nor false",
            table=uri,
            option=key,
            remedy="use true or false.",
        )
    return text in ("true", "1")
