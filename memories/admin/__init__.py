"""The administration of accounts, projects, categories and memories; a file for each kind of room."""

from memories.admin import accounts, machinery, memories, places, trail

__all__ = ["accounts", "machinery", "memories", "places", "trail"]
