"""Vectors on their way to and from PostgreSQL, in binary: as text they would cost more than the scan."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from django.db import connection
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

from elowen.providers.vectors import Vector

HEADER_BYTES = 4  # of a halfvec: its width and a zero, 16 bits each


@dataclass(frozen=True)
class VectorParam:
    """A vector as a parameter of a statement; write it `%(name)s::halfvec`."""

    vector: Vector


class VectorDumper(Dumper):
    format = Format.BINARY
    oid = 0  # the cast in the statement says what it is; the type's own number differs by database

    def dump(self, obj: VectorParam) -> Buffer:
        header = len(obj.vector).to_bytes(2) + b"\0\0"
        return header + obj.vector.astype(">f2").tobytes()


def vector_param(vector: Vector) -> VectorParam:
    return VectorParam(vector)


@contextmanager
def vector_cursor() -> Iterator[psycopg.Cursor[Any]]:
    """Open a cursor in Django's transaction that takes vectors and binds at the server."""
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.adapters.register_dumper(VectorParam, VectorDumper)
        yield cursor


def hydrate_vectors(space_id: int, ids: Sequence[int]) -> dict[int, Vector]:
    """Return the stored vectors of these memories; those without one in the space are left out."""
    with vector_cursor() as cursor:
        cursor.execute(
            "SELECT memory_id, halfvec_send(vec) FROM embeddings_memoryembedding"
            " WHERE space_id = %s AND memory_id = ANY(%s)",
            [space_id, list(ids)],
            binary=True,
        )
        return {memory_id: vector_from(data) for memory_id, data in cursor}


def vector_from(data: bytes) -> Vector:
    return np.frombuffer(data, ">f2", offset=HEADER_BYTES).astype(np.float32)
