def files_of_json(
    data: bytes,
) -> tuple[list[tuple[str, str, str, int, int]], dict[str, tuple[str, ...]]] | None:
    """Files in a completed commit's JSON, and replaced file ids by partition.

    Each file: partition, file id, path below the table, size in bytes, offset in the log file (0 where there is none).
    Statistics without a path are left out.

    Returns:
        None for what is no JSON, or not in the form that Apache Hudi writes: a full parser must look at it.
    """
