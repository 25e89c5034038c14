"""Makes golden tables with Apache Hudi."""
