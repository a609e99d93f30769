"""Whether this process lives, and whether it can serve."""

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse


def alive(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"alive": True})


def ready(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and has every migration, else 503 with the reason."""
    try:
        missing = missing_migrations()
    except DatabaseError:
        return JsonResponse({"ready": False, "reason": "The database does not answer."}, status=503)
    if missing:
        return JsonResponse({"ready": False, "reason": f"{missing} migrations are missing."}, status=503)
    return JsonResponse({"ready": True})


def missing_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
