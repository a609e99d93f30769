"""The pages that people can go to, in words that they may look for."""

from dataclasses import dataclass

from django.urls import reverse


@dataclass(frozen=True)
class Page:
    route: str  # the name of its path, which takes no argument
    title: str
    about: str
    staff_only: bool = False

    @property
    def url(self) -> str:
        return reverse(self.route)


PAGES = (
    Page(
        "memories:list",
        "Memories",
        "See everything that is stored about you and your projects; keep and restore it.",
    ),
    Page(
        "maintenance:forecast",
        "Leaving soon",
        "Which memories fade away next, on which day, and how to keep them.",
    ),
    Page(
        "help:index",
        "Help",
        "How Elowen works: recall, retention, embedding models, the REST interface. Search it here.",
    ),
    Page(
        "docs",
        "API reference",
        "Every call of the REST interface, with its parameters, to try out in the browser.",
    ),
    Page(
        "memories:retention",
        "Retention settings",
        "How fast memories fade at each level of importance, and how many may be deleted in a day.",
        staff_only=True,
    ),
    Page(
        "embeddings-pages:settings",
        "Embedding settings",
        "Choose the model that finds memories by meaning, connect accounts at providers, watch the index.",
        staff_only=True,
    ),
    Page(
        "embeddings-pages:connection-new",
        "Connect an account at a provider",
        "Give a key of OpenAI, OpenRouter, Mistral, Together or a server like them.",
        staff_only=True,
    ),
    Page(
        "admin:index",
        "Administration",
        "Accounts, API keys, projects, connections to providers, the audit, the trash and the queue.",
        staff_only=True,
    ),
    Page(
        "admin:memories_account_changelist",
        "Accounts",
        "Who may sign in: add people, change passwords, make administrators.",
        staff_only=True,
    ),
    Page(
        "admin:memories_apikey_changelist",
        "API keys",
        "Secrets with which assistants sign in: issue and revoke them.",
        staff_only=True,
    ),
    Page(
        "admin:memories_project_changelist",
        "Projects",
        "Shared pools of memories and their members.",
        staff_only=True,
    ),
    Page(
        "admin:memories_memoryevent_changelist",
        "Audit",
        "Who changed, deleted, restored or merged which memory, and when.",
        staff_only=True,
    ),
    Page(
        "admin:embeddings_embeddingusage_changelist",
        "Embedding usage",
        "What was paid to providers: requests and tokens per account.",
        staff_only=True,
    ),
    Page(
        "admin:embeddings_failuresequence_changelist",
        "Embedding failures",
        "What goes on failing at the embedding model or its provider.",
        staff_only=True,
    ),
    Page(
        "admin:maintenance_sweeprun_changelist",
        "Sweeps",
        "The daily run that moves faded memories to the trash; start one by hand.",
        staff_only=True,
    ),
)
