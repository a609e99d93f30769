from django.db import models
from django.utils import timezone


class ConfigSection(models.Model):
    """One section of the settings document. The document's revision is the greatest of its sections'."""

    name = models.CharField(max_length=60, primary_key=True)
    document = models.JSONField(default=dict)
    revision = models.BigIntegerField(default=1)
    updated_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name
