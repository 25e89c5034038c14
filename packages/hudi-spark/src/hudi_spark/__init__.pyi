from hudi_format.errors import *  # noqa: F403
from hudi_spark.session import configure as configure
from hudi_spark.session import disable as disable
from hudi_spark.session import enable as enable
from hudi_spark.session import enabled as enabled
from hudi_spark.session import sql as sql
from hudi_spark.writing.table_services import build_index as build_index
from hudi_spark.writing.table_services import compact as compact
from hudi_spark.writing.table_services import drop_index as drop_index
from hudi_spark.writing.table_services import log_compact as log_compact
from hudi_spark.writing.table_services import resize_buckets as resize_buckets
from hudi_spark.writing.writer import dry_run as dry_run
from hudi_spark.writing.writer import last_commit as last_commit

__version__: str
