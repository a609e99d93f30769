"""What all lists have in common: checked parameters, keyset pages, and the shape of the answer."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet
from django.utils import timezone
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers as drf
from rest_framework.request import Request
from rest_framework.response import Response

from elowen.lib import pages
from elowen.lib.errors import Invalid
from memories.serializers import PageQuery


def page_reply(name: str, row: type[drf.Serializer[Any]]) -> drf.Serializer[Any]:
    return inline_serializer(
        name,
        {
            "results": row(many=True),
            "next": drf.CharField(allow_null=True),
            "previous": drf.CharField(allow_null=True),
        },
    )


def validated(kind: type[drf.Serializer[Any]], data: Any) -> dict[str, Any]:
    serializer = kind(data=data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


def validated_query(kind: type[drf.Serializer[Any]], request: Request) -> dict[str, Any]:
    """Check the query parameters; unknown and repeated ones are refused by name."""
    known = kind().get_fields()
    for name, values in request.query_params.lists():
        if name not in known:
            raise Invalid("There is no such parameter.", field=name.encode("utf-8", "replace").decode())
        if len(values) > 1:
            raise Invalid("Give this parameter once.", field=name)
    return validated(kind, request.query_params.dict())


def paged(
    request: Request, found: QuerySet[Any], row: type[drf.Serializer[Any]], *, ordering: str = "id"
) -> Response:
    """Answer with one page, in the order of the ids."""
    query = validated_query(PageQuery, request)
    cursor = pages.cursor_in(query, ordering=ordering, kind=int)
    page = pages.page_of(
        found.annotate(place=F("id")),
        ordering=ordering.replace("id", "place"),
        limit=query["limit"],
        cursor=cursor,
        now=timezone.now(),
        key=lambda record: (record.pk, record.pk),
        after=beyond,
    )
    return page_response(request, page, row(page.rows, many=True).data, ordering)


def beyond(greater: bool, value: int | float | datetime, row_id: int) -> Q:
    side = "gt" if greater else "lt"
    return Q(**{f"place__{side}": value}) | Q(**{"place": value, f"id__{side}": row_id})


def page_response(request: Request, page: pages.Page, results: Any, ordering: str) -> Response:
    return Response(
        {
            "results": results,
            "next": link(request, page.next, ordering),
            "previous": link(request, page.previous, ordering),
        }
    )


def link(request: Request, cursor: pages.Cursor | None, ordering: str) -> str | None:
    """Return the address of a neighbouring page, with every other parameter kept."""
    if cursor is None:
        return None
    params = request.query_params.copy()
    params["cursor"] = pages.encode(replace(cursor, ordering=ordering))
    return f"{request.build_absolute_uri(request.path)}?{params.urlencode()}"
