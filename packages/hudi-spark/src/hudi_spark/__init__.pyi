from hudi_spark.session import configure as configure
from hudi_spark.session import disable as disable
from hudi_spark.session import enable as enable
from hudi_spark.session import enabled as enabled
from hudi_spark.writer import last_commit as last_commit

__version__: str
__all__ = ["configure", "disable", "enable", "enabled", "last_commit"]
