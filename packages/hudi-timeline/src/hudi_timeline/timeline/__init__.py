"""What the files of instants hold: commit metadata as JSON, plans and results as Avro."""
