"""Content of instant files: commit metadata as JSON, plans and results as Avro."""
