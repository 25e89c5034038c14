"""Read and write the files of Apache Hudi tables with Cython kernels over Arrow; no JVM."""

__version__ = "0.1.0"
