"""The service of the demonstration: says which node it runs on.

It listens where clients look for it, on its node's own loopback address, so that two copies could both answer and would
be seen; and, for its agent, on one readiness address that is the same on every node.

Run as a plain file with `python3 -S -E`: stdlib only.
"""

import http.server
import os
import socket
import sys
import threading

READY_HOST = "127.0.0.1"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer with the node's name."""
        body = os.environ.get("HACLUSTERD_NODE", "?").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Keep quiet."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def server_bind(self) -> None:
        """Share the readiness address, so that it never hides a second copy."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.server_name, self.server_port = "demo", 0
        self.socket.bind(self.server_address)


def main() -> None:
    """Serve for ever: `demo_service.py HOST PORT READY_PORT`, HOST with the node's number in place of `#`."""
    number = "".join(character for character in os.environ.get("HACLUSTERD_NODE", "") if character.isdigit()) or "1"
    host, port, ready_port = sys.argv[1].replace("#", number), int(sys.argv[2]), int(sys.argv[3])
    ready = _Server((READY_HOST, ready_port), _Handler)
    threading.Thread(target=ready.serve_forever, daemon=True).start()
    _Server((host, port), _Handler).serve_forever()


if __name__ == "__main__":
    main()
