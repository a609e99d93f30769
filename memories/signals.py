from django.dispatch import Signal

# Sent after commit with memory_ids: memories whose body, status or category may have changed.
memory_committed = Signal()
