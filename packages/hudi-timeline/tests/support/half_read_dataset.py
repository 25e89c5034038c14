"""A script that ends when it has read a part of a table's dataset: `python half_read_dataset.py PATH`."""

import sys

from hudi_timeline import read_hudi, write_hudi

FILES, ROWS = 24, 40

path = sys.argv[1]
rows = [{"id": f"{n}-{m}", "city": f"c{n}", "fare": float(m)} for n in range(FILES) for m in range(ROWS)]
write_hudi(path, rows, key="id", partition_by="city")
batches = read_hudi(path).to_pyarrow_dataset().to_batches(batch_size=3)
print(next(batches).num_rows)
