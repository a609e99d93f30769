from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from elowen.lib.errors import NotFound
from memories.actions import categories
from memories.api.memories import IDEMPOTENCY_KEY
from memories.api.paging import page_reply, paged, validated
from memories.idempotency import idempotent
from memories.models import Category
from memories.requests import account_of
from memories.serializers import CategoryChange, CategoryInput, CategoryRow, PageQuery

NAMES = {"projectId": "project_id"}


def renamed(data: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in data.items()}


class CategoryList(APIView):
    @extend_schema(
        operation_id="category_list",
        parameters=[PageQuery],
        responses=page_reply("CategoryPage", CategoryRow),
    )
    def get(self, request: Request) -> Response:
        return paged(request, Category.objects.usable_by(account_of(request)), CategoryRow)

    @extend_schema(
        operation_id="category_create",
        request=CategoryInput,
        responses={201: CategoryRow},
        parameters=[IDEMPOTENCY_KEY],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        data = renamed(validated(CategoryInput, request.data), NAMES)
        category = categories.create_category(owner=account_of(request), **data)
        return Response(CategoryRow(category).data, status=201)


class CategoryDetail(APIView):
    @extend_schema(operation_id="category_get", responses=CategoryRow)
    def get(self, request: Request, category_id: int) -> Response:
        category = Category.objects.usable_by(account_of(request)).filter(pk=category_id).first()
        if category is None:
            raise NotFound
        return Response(CategoryRow(category).data)

    @extend_schema(operation_id="category_change", request=CategoryChange, responses=CategoryRow)
    def patch(self, request: Request, category_id: int) -> Response:
        changes = renamed(validated(CategoryChange, request.data), NAMES)
        category = categories.update_category(
            category_id=category_id, by=account_of(request), changes=changes
        )
        return Response(CategoryRow(category).data)

    @extend_schema(operation_id="category_delete", responses={204: None})
    def delete(self, request: Request, category_id: int) -> Response:
        categories.delete_category(category_id=category_id, by=account_of(request))
        return Response(status=204)
