"""Table versions: differences in layout and meaning between releases of Apache Hudi.

    version  written by   timeline                                log files named after  merge
    5        0.12, 0.13   .hoodie, <instant>.<action>             their slice            payload class
    6        0.14, 0.15   as 5                                    as 5                   as 5
    8        1.0          .hoodie/timeline, <instant>_<completed> their own instant      merge mode
    9        1.1, 1.2     as 8                                    as 8                   as 8, several ordering fields

Readers and writers ask a version for what they depend on, and compare no numbers: another version is a column here.

Source: timeline format and "v8 and v9 differences" of Apache Hudi 1.x; UpgradeDowngrade of 0.15 and 1.2; golden tables.
"""

from __future__ import annotations

_NAMES = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")


class TableVersion(int):
    """Number of `hoodie.table.version` and timeline layout; 0 where it is not stored.

    The layout (`hoodie.timeline.layout.version`) goes with the version.  A table whose properties disagree is refused
    before it is read, and looked at by `verify`, for which counts where files lie: what depends on the timeline goes by
    the layout.
    """

    layout: int

    def __new__(cls, number: int, layout: int | None = None) -> TableVersion:
        """
        Args:
            layout: of the timeline; None for the one that goes with the version.
        """
        value = super().__new__(cls, number)
        value.layout = value.own_layout if layout is None else layout
        return value

    # --- the number ----------------------------------------------------------------------------------

    @property
    def label(self) -> str:
        """Name in Apache Hudi's options, such as SIX; "" for a number that no release has."""
        return _NAMES[self] if self.exists else ""

    @property
    def exists(self) -> bool:
        """Whether a release has it."""
        return 0 <= self < len(_NAMES)

    @property
    def readable(self) -> bool:
        """Whether tables of it can be read."""
        return self in READABLE_VERSIONS

    @property
    def own_layout(self) -> int:
        """The timeline layout that goes with it."""
        return 2 if self >= 8 else 1

    @property
    def layout_exists(self) -> bool:
        return self.layout <= 2

    @property
    def agrees(self) -> bool:
        """Whether version and layout go together; tables of 2020 say neither."""
        return self.layout_exists and (self.layout == 2) == (self.own_layout == 2)

    # --- timeline ------------------------------------------------------------------------------------

    @property
    def has_timeline_folder(self) -> bool:
        """Whether instants lie in a folder below `.hoodie`, and archived ones below that."""
        return self.layout >= 2

    @property
    def has_requested_states(self) -> bool:
        """Whether an instant has a file for each state that it goes through."""
        return self.layout > 0

    @property
    def has_completion_times(self) -> bool:
        """Whether the names of completed instants say when they were completed.

        Then file slices, ranges of incremental queries and checkpoints go by times of completion.
        """
        return self.layout == 2

    @property
    def has_lsm_history(self) -> bool:
        """Whether archived instants are in Parquet files with a manifest, not in Avro logs."""
        return self.layout == 2

    @property
    def copies_waiting_plans(self) -> bool:
        """Whether plans of compactions that were not begun have a copy in `.hoodie/.aux`."""
        return self <= 5

    # --- files ---------------------------------------------------------------------------------------

    @property
    def names_logs_by_own_instant(self) -> bool:
        """Whether a log file has the instant of the commit that wrote it, and its blocks alone.

        Else it is named after the base file of its slice, and commits append blocks to it.
        """
        return self.layout == 2

    @property
    def keeps_digits_of_floats(self) -> bool:
        """Whether floats that are doubles now keep their printed digits.

        They do so in records of the log and inside of other columns; in plain columns of base files in any version.
        """
        return self >= 9

    @property
    def images_keep_nulls(self) -> bool:
        """Whether change images of rows that met log records keep null columns."""
        return self < 9

    # --- metadata table ------------------------------------------------------------------------------

    @property
    def suffixes_metadata_instants(self) -> bool:
        """Whether the metadata table's own instants are times of writes with three more digits."""
        return self.layout < 2

    @property
    def shards_secondary_keys_by_value(self) -> bool:
        """Whether a secondary index key is sharded by its value, not by the whole key."""
        return self >= 9

    @property
    def skips_data_by_default(self) -> bool:
        """Whether Apache Hudi's readers of it leave out files by indexes unless told not to."""
        return self >= 8

    # --- hoodie.properties and merging ---------------------------------------------------------------

    @property
    def ordering_key(self) -> str:
        """The property with the ordering fields."""
        return "hoodie.table.ordering.fields" if self.has_several_ordering_fields else PRECOMBINE_FIELD

    @property
    def has_several_ordering_fields(self) -> bool:
        return self >= 9

    @property
    def has_merge_mode(self) -> bool:
        """Whether records merge by `hoodie.record.merge.mode`, not by a payload class.

        Then all blocks of an instant are merged together.
        """
        return self >= 8

    @property
    def fills_schema_defaults(self) -> bool:
        """Whether merges know the defaults of the table's schema.

        Apache Hudi 1.0.2 merges by Spark's schema, in which every default is null.
        """
        return self != 8

    # --- partition columns ---------------------------------------------------------------------------

    @property
    def paths_tell_partition_values(self) -> bool:
        """Whether merged and incremental rows have the partition values of paths, not of files."""
        return self.layout == 2

    @property
    def files_tell_formatted_times(self) -> bool:
        """Whether partition values that a key generator formats as times come from the files."""
        return self >= 8

    @property
    def partition_columns_stay(self) -> bool:
        """Whether columns with values of the path keep their place; else they come last."""
        return self >= 8

    # --- incremental queries -------------------------------------------------------------------------

    @property
    def ranges_know_earlier_replacements(self) -> bool:
        """Whether a range leaves out rows of file groups that were replaced before it began."""
        return self.layout == 2

    @property
    def ranges_skip_missing_files(self) -> bool:
        """Whether a range that is to give what is left passes over missing files."""
        return self.layout == 2


PRECOMBINE_FIELD = "hoodie.table.precombine.field"

READABLE_VERSIONS = (5, 6, 8, 9)
WRITE_VERSION = TableVersion(6)
"""The version of new tables, and the only one that is written."""
