"""Who may use which pool. The one membership expression; everything that shares goes through it.

There is no cache, so a revocation holds in the very next statement, and no exception for administrators.
"""

from django.db.models import Exists, OuterRef, Q, QuerySet

from memories.models.project import Project, ProjectMember


def sharer_projects(account_id: object) -> QuerySet[Project]:
    """Return the projects whose pool the account may use right now.

    Sharing is on, and the share list names the account; or the list is empty and it is a member.
    Anything but a positive whole number grants nothing, without a query.
    """
    if type(account_id) is not int or account_id <= 0:
        return Project.objects.none()
    listed = ProjectMember.objects.filter(project=OuterRef("project"), on_share_list=True)
    memberships = ProjectMember.objects.filter(Q(on_share_list=True) | ~Exists(listed), account_id=account_id)
    return Project.objects.filter(memory_shared=True, pk__in=memberships.values("project"))


def is_sharer(*, account_id: object, project_id: int) -> bool:
    return sharer_projects(account_id).filter(pk=project_id).exists()
