"""Apache Hudi tables without a JVM: timeline, snapshots, writes, and the hudi command line."""

__version__ = "0.1.0"
