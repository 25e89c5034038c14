import numpy as np

def key_hashes(
    data: np.ndarray, offsets: np.ndarray, name_data: np.ndarray, name_offsets: np.ndarray, out: np.ndarray
) -> None: ...
def places(
    hashes: np.ndarray, codes: np.ndarray, starts: np.ndarray, values: np.ndarray, out: np.ndarray
) -> None: ...
