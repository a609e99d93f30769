import numpy as np
from numpy.typing import NDArray

type Vector = NDArray[np.float32]


def unit(rows: Vector) -> Vector:
    """Return the rows at length 1; none may be zero."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
