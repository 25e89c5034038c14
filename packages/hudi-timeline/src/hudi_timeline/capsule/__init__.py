"""Bug capsules: a table's state in one file, without its data."""

from hudi_timeline.capsule.gather import Capsule, make_capsule
from hudi_timeline.capsule.rebuild import open_capsule

__all__ = ["Capsule", "make_capsule", "open_capsule"]
