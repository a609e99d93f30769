from typing import Self

from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.utils import timezone

from memories.access import sharer_projects
from memories.models.account import Account
from memories.models.project import Project


class CategoryQuerySet(models.QuerySet["Category"]):
    def pools_of(self, account: Account) -> Self:
        """Keep the shared pools that the account may use right now."""
        return self.filter(owner=None, project__in=sharer_projects(account.pk))

    def usable_by(self, account: Account) -> Self:
        """Keep the account's own categories and the pools it may use right now."""
        return self.filter(Q(owner=account) | Q(owner=None, project__in=sharer_projects(account.pk)))


class Category(models.Model):
    """A drawer for memories: one's own, or with a project and no owner, that project's shared pool."""

    class Icon(models.TextChoices):
        BRIEFCASE = "Briefcase"
        SERVER = "Server"
        DATABASE = "Database"
        HEART = "Heart"
        CODE = "Code"
        HOME = "Home"
        STAR = "Star"
        FOLDER = "Folder"
        GLOBE = "Globe"
        BOOK = "Book"
        CPU = "Cpu"
        TERMINAL = "Terminal"
        ROCKET = "Rocket"
        LIGHTBULB = "Lightbulb"
        TARGET = "Target"
        CALENDAR = "Calendar"
        DOLLAR_SIGN = "DollarSign"
        SHOPPING_CART = "ShoppingCart"
        MUSIC = "Music"
        CAMERA = "Camera"
        MAP_PIN = "MapPin"
        ZAP = "Zap"
        FLAG = "Flag"
        BOOKMARK = "Bookmark"

    owner = models.ForeignKey(Account, models.CASCADE, null=True, blank=True, related_name="categories")
    project = models.ForeignKey(Project, models.CASCADE, null=True, blank=True, related_name="categories")
    name = models.CharField(max_length=60)
    description = models.CharField(max_length=1000, blank=True)  # the guide a classifier reads
    color = models.CharField(max_length=7, default="#64748b")
    icon = models.CharField(max_length=12, choices=Icon.choices, default=Icon.FOLDER)
    created_at = models.DateTimeField(default=timezone.now)
    objects = CategoryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "categories"
        constraints = [
            CheckConstraint(
                condition=Q(owner__isnull=False) | Q(project__isnull=False), name="pool_has_a_project"
            ),
            UniqueConstraint(fields=["owner", "name"], name="one_name_per_owner"),
            UniqueConstraint(
                fields=["owner", "project"], condition=Q(owner__isnull=False), name="one_category_per_project"
            ),
            UniqueConstraint(fields=["project"], condition=Q(owner=None), name="one_pool_per_project"),
            CheckConstraint(condition=Q(color__regex=r"^#[0-9a-fA-F]{6}$"), name="color_is_hex"),
        ]

    def __str__(self) -> str:
        return self.name
