from django.core.validators import RegexValidator
from django.db import models
from django.db.models import UniqueConstraint
from django.utils import timezone

from memories.models.account import Account

ABSOLUTE = RegexValidator(
    r"^(/|[A-Za-z]:[\\/]|\\\\)", "The root path must be absolute, like /srv/app or C:\\app"
)


class Project(models.Model):
    """Something people work on together. Its members may share a pool of memories."""

    slug = models.SlugField(max_length=50, unique=True)
    name = models.CharField(max_length=100)
    root_path = models.CharField(max_length=1000, blank=True, validators=[ABSOLUTE])
    memory_shared = models.BooleanField("members share memories", default=False)
    created_at = models.DateTimeField(default=timezone.now)
    members = models.ManyToManyField(Account, through="ProjectMember", related_name="projects")

    def __str__(self) -> str:
        return self.slug


class ProjectMember(models.Model):
    """One account in one project. The share list is the rows marked so, thus it can only name members."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="memberships")
    account = models.ForeignKey(Account, models.CASCADE, related_name="memberships")
    is_manager = models.BooleanField(default=False)
    on_share_list = models.BooleanField(default=False)

    class Meta:
        constraints = [UniqueConstraint(fields=["project", "account"], name="one_membership_each")]

    def __str__(self) -> str:
        return f"account {self.account_id} in project {self.project_id}"
