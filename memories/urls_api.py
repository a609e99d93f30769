"""Paths below /api/. `elowen.urls` adds the memory list and the settings, to which a higher app
brings the search and its limits.
"""

from django.urls import path

from memories.api import accounts, categories, events, memories, projects, vitality

memory_urlpatterns = [
    path("/batch", memories.MemoryBatch.as_view()),
    path("/merge", memories.MemoryMerge.as_view()),
    path("/purge", memories.PurgeMany.as_view()),
    path("/empty-trash", memories.EmptyTrash.as_view()),
    path("/events", events.EventFeed.as_view()),
    path("/categories", categories.CategoryList.as_view()),
    path("/categories/<int:category_id>", categories.CategoryDetail.as_view()),
    path("/<int:memory_id>", memories.MemoryDetail.as_view()),
    path("/<int:memory_id>/restore", memories.MemoryRestore.as_view()),
    path("/<int:memory_id>/archive", memories.MemoryArchive.as_view()),
    path("/<int:memory_id>/purge", memories.MemoryPurge.as_view()),
    path("/<int:memory_id>/category", memories.MemoryCategory.as_view()),
    path("/<int:memory_id>/keep", vitality.MemoryKeep.as_view()),
    path("/<int:memory_id>/vitality-history", vitality.MemoryVitality.as_view()),
    path("/<int:memory_id>/events", events.MemoryEvents.as_view()),
]
urlpatterns = [
    path("me", accounts.Me.as_view()),
    path("keys", accounts.KeyList.as_view()),
    path("keys/<int:key_id>", accounts.KeyDetail.as_view()),
    path("accounts", accounts.AccountList.as_view()),
    path("accounts/<int:account_id>", accounts.AccountDetail.as_view()),
    path("accounts/<int:account_id>/keys", accounts.AccountKeys.as_view()),
    path("projects", projects.ProjectList.as_view()),
    path("projects/<int:project_id>", projects.ProjectDetail.as_view()),
    path("projects/<int:project_id>/members", projects.Members.as_view()),
    path("projects/<int:project_id>/members/<int:account_id>", projects.MemberDetail.as_view()),
    path("projects/<int:project_id>/memory-members", projects.MemoryMembers.as_view()),
]
