"""What every refusal of the REST interface looks like."""

import json
from typing import Any


def problem(response: Any, status: int, *fields: str) -> dict[str, Any]:
    """Check that an answer is a problem document that names these fields, and return it."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    document: dict[str, Any] = json.loads(response.content)
    assert {"title", "status", "detail", "code", "errors"} <= set(document)
    assert document["type"] == f"urn:elowen:problem:{document['code']}"
    assert document["status"] == status
    assert set(fields) <= set(document["errors"])
    return document
