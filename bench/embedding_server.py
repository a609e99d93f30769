"""A bundled model behind HTTP, speaking as OpenAI does: what a llama.cpp or TEI beside Elowen would be.

python -m bench.embedding_server multilingual 8080
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

from elowen.providers.local import Name, embedder


class Handler(BaseHTTPRequestHandler):
    model: Name

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = embedder(self.model).embed(asked["input"])
        data = [{"index": place, "embedding": row.tolist()} for place, row in enumerate(rows)]
        answer = json.dumps({"data": data, "usage": {"total_tokens": len(data)}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


if __name__ == "__main__":
    Handler.model = cast(Name, sys.argv[1])
    embedder(Handler.model).embed(["The first text loads the model."])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
