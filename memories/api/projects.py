from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from elowen.lib.errors import NotFound
from memories.actions import projects
from memories.api.categories import renamed
from memories.api.memories import IDEMPOTENCY_KEY
from memories.api.paging import page_reply, paged, validated
from memories.idempotency import idempotent
from memories.models import Account, Project
from memories.requests import account_of
from memories.serializers import (
    MemberInput,
    MemberRow,
    PageQuery,
    ProjectChange,
    ProjectInput,
    ProjectRow,
    ShareList,
)

NAMES = {"rootPath": "root_path", "memoryShared": "memory_shared"}


def visible_projects(account: Account) -> QuerySet[Project]:
    """Return the projects the account belongs to; administrators manage them all."""
    return Project.objects.all() if account.is_staff else Project.objects.filter(members=account)


def visible_project(account: Account, project_id: int) -> Project:
    project = visible_projects(account).filter(pk=project_id).first()
    if project is None:
        raise NotFound
    return project


class ProjectList(APIView):
    @extend_schema(
        operation_id="project_list",
        parameters=[PageQuery],
        responses=page_reply("ProjectPage", ProjectRow),
    )
    def get(self, request: Request) -> Response:
        return paged(request, visible_projects(account_of(request)), ProjectRow)

    @extend_schema(
        operation_id="project_create",
        request=ProjectInput,
        responses={201: ProjectRow},
        parameters=[IDEMPOTENCY_KEY],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        data = renamed(validated(ProjectInput, request.data), NAMES)
        return Response(ProjectRow(projects.create_project(by=account_of(request), **data)).data, status=201)


class ProjectDetail(APIView):
    @extend_schema(operation_id="project_get", responses=ProjectRow)
    def get(self, request: Request, project_id: int) -> Response:
        return Response(ProjectRow(visible_project(account_of(request), project_id)).data)

    @extend_schema(operation_id="project_change", request=ProjectChange, responses=ProjectRow)
    def patch(self, request: Request, project_id: int) -> Response:
        changes = renamed(validated(ProjectChange, request.data), NAMES)
        project = projects.update_project(project_id=project_id, by=account_of(request), changes=changes)
        return Response(ProjectRow(project).data)

    @extend_schema(operation_id="project_delete", responses={204: None})
    def delete(self, request: Request, project_id: int) -> Response:
        projects.delete_project(project_id=project_id, by=account_of(request))
        return Response(status=204)


class Members(APIView):
    @extend_schema(
        operation_id="project_members", parameters=[PageQuery], responses=page_reply("MemberPage", MemberRow)
    )
    def get(self, request: Request, project_id: int) -> Response:
        members = visible_project(account_of(request), project_id).memberships.select_related("account")
        return paged(request, members, MemberRow)

    @extend_schema(operation_id="project_set_member", request=MemberInput, responses=MemberRow)
    def post(self, request: Request, project_id: int) -> Response:
        data = validated(MemberInput, request.data)
        member = projects.set_member(
            project_id=project_id,
            by=account_of(request),
            account_id=data["accountId"],
            is_manager=data["isManager"],
        )
        return Response(MemberRow(member).data)


class MemberDetail(APIView):
    @extend_schema(operation_id="project_remove_member", responses={204: None})
    def delete(self, request: Request, project_id: int, account_id: int) -> Response:
        projects.remove_member(project_id=project_id, by=account_of(request), account_id=account_id)
        return Response(status=204)


class MemoryMembers(APIView):
    """Who may use the pool; an empty list means every member."""

    @extend_schema(operation_id="project_share_list", responses=ShareList)
    def get(self, request: Request, project_id: int) -> Response:
        listed = visible_project(account_of(request), project_id).memberships.filter(on_share_list=True)
        return Response({"userIds": list(listed.order_by("account_id").values_list("account_id", flat=True))})

    @extend_schema(operation_id="project_set_share_list", request=ShareList, responses=ShareList)
    def put(self, request: Request, project_id: int) -> Response:
        ids = validated(ShareList, request.data)["userIds"]
        listed = projects.set_share_list(project_id=project_id, by=account_of(request), account_ids=ids)
        return Response({"userIds": listed})
