"""Benchmarks. They start a database of their own, print a table and JSON, and need no network."""

import os

# Before numpy is imported: a second BLAS thread spins beside any neighbour and would spoil the reference.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
