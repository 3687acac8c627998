"""What one part of a rule answers, of a pod or of every node."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

NO = 0
"""It does not match."""
YES = 1
"""It matches."""
FAILED = 2
"""Whether it matches can not be told: an expression could not be evaluated, or its value is neither true nor false."""

Answers = npt.NDArray[np.int8]
"""One answer a row of the node columns."""
