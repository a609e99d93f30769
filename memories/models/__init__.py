from memories.models.account import Account, ApiKey
from memories.models.audit import ConfigEvent, MemoryEvent
from memories.models.category import Category
from memories.models.config import ConfigSection
from memories.models.memory import BodyHash, Memory
from memories.models.project import Project, ProjectMember
from memories.models.service import Heartbeat, IdempotentReply, Lease
from memories.models.usage import MemoryUse

__all__ = [
    "Account",
    "ApiKey",
    "BodyHash",
    "Category",
    "ConfigEvent",
    "ConfigSection",
    "Heartbeat",
    "IdempotentReply",
    "Lease",
    "Memory",
    "MemoryEvent",
    "MemoryUse",
    "Project",
    "ProjectMember",
]
