def files_of_json(
    data: bytes,
) -> tuple[list[tuple[str, str, str, int, int]], dict[str, tuple[str, ...]]] | None:
    """The files that the JSON of a completed commit names, and by partition the file ids that it replaced.

    Each file: partition, file id, path below the table, size in bytes, offset in the log file (0 where there is none).
    Statistics without a path are left out.

    Returns:
        None for what is no JSON, or not in the form that Apache Hudi writes: a full parser must look at it.
    """
