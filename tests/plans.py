"""What a plan of PostgreSQL did."""

from typing import Any


def rows_handled(node: dict[str, Any]) -> float:
    """Return the most rows that one node of a plan returned or threw away, over all its loops."""
    mine = sum(node.get(name, 0) for name in ("Actual Rows", "Rows Removed by Filter"))
    mine += node.get("Rows Removed by Join Filter", 0)
    return max([float(mine * node["Actual Loops"]), *map(rows_handled, node.get("Plans", ()))])
