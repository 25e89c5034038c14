"""Per-file entries of a completed commit's JSON; see `files_of_json`."""

try:
    from hudi_format._commit_json import files_of_json
except ImportError as e:
    raise ImportError(
        "hudi_format._commit_json, a compiled part of hudi-format, is missing; install a wheel, or build "
        "it in a checkout: cd packages/hudi-format && python setup.py build_ext --inplace"
    ) from e

__all__ = ["files_of_json"]
