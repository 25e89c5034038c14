"""The real Apache Hudi, hudi-rs and other engines beside this project: for tests and benchmarks only."""
