"""Test objects, every default visible."""

import factory
from django.utils import timezone
from factory.django import DjangoModelFactory

from elowen.lib.hashing import text_hash
from memories.models import Account, BodyHash, Category, Memory, Project, ProjectMember

PASSWORD = "correct horse battery"


class AccountFactory(DjangoModelFactory):
    class Meta:
        model = Account
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"account{n}")
    is_active = True

    @factory.post_generation
    def password(self: Account, create: bool, extracted: str | None, **kwargs: object) -> None:
        self.set_password(extracted or PASSWORD)
        self.save()


class ProjectFactory(DjangoModelFactory):
    class Meta:
        model = Project

    slug = factory.Sequence(lambda n: f"project-{n}")
    name = factory.LazyAttribute(lambda project: project.slug.title())
    memory_shared = False


class ProjectMemberFactory(DjangoModelFactory):
    class Meta:
        model = ProjectMember

    project = factory.SubFactory(ProjectFactory)
    account = factory.SubFactory(AccountFactory)
    is_manager = False
    on_share_list = False


class CategoryFactory(DjangoModelFactory):
    class Meta:
        model = Category

    owner = factory.SubFactory(AccountFactory)
    name = factory.Sequence(lambda n: f"Category {n}")


class MemoryFactory(DjangoModelFactory):
    """A memory with its body hash, as an action would leave it, but without an audit event."""

    class Meta:
        model = Memory
        skip_postgeneration_save = True

    owner = factory.SubFactory(AccountFactory)
    category = factory.SubFactory(CategoryFactory, owner=factory.SelfAttribute("..owner"))
    body = factory.Sequence(lambda n: f"Memory number {n}")
    kind = "fact"
    importance = 5
    status = Memory.Status.ACTIVE
    created_at = factory.LazyFunction(timezone.now)
    updated_at = factory.SelfAttribute("created_at")

    @factory.post_generation
    def hashed(self: Memory, create: bool, extracted: bool | None, **kwargs: object) -> None:
        if extracted is not False:
            BodyHash.objects.create(memory=self, sha256=text_hash(self.body))
