"""Bug capsules: a table's metadata in one file, without its data."""

from hudi_timeline.bug_capsule.make import Capsule, make_capsule
from hudi_timeline.bug_capsule.open import open_capsule

__all__ = ["Capsule", "make_capsule", "open_capsule"]
