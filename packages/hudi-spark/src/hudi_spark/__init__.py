"""format("hudi") for PySpark without a jar."""

__version__ = "0.1.0"
