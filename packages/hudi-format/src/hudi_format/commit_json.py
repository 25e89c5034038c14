"""Per-file entries of a completed commit's JSON; see `files_of_json`."""

from hudi_format._lazy import CompiledParts

with CompiledParts():
    from hudi_format._commit_json import files_of_json as files_of_json
