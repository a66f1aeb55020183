"""Serves the Flunders of wardle.example.com/v1alpha1 from memory: discovery, and get, list, watch, create, patch and delete.

Usage: extension_server.py PORT CERTIFICATE KEY
"""

import json
import queue
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

VERSION = "wardle.example.com/v1alpha1"
VERBS = ["create", "delete", "get", "list", "patch", "watch"]
RESOURCE = {"name": "flunders", "singularName": "flunder", "namespaced": True, "kind": "Flunder", "verbs": VERBS, "shortNames": ["fl"]}

lock = threading.Lock()
flunders, watchers, revision = {}, [], 1


def changed(kind, flunder):
    global revision
    revision += 1
    flunder["metadata"]["resourceVersion"] = str(revision)
    for watcher in watchers:
        watcher.put({"type": kind, "object": dict(flunder)})


def merged(old, new):
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    both = {key: merged(old.get(key), value) for key, value in new.items() if value is not None}
    return {**{key: value for key, value in old.items() if key not in new}, **both}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, code, document):
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, code, reason):
        self.answer(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason})

    def body(self):
        return json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")

    def route(self):
        """Returns the namespace and the name of the path."""
        parts = urlparse(self.path).path.split("/")[4:]
        namespace = parts[1] if parts[:1] == ["namespaces"] else ""
        rest = parts[2:] if namespace else parts
        return namespace, rest[1] if len(rest) > 1 else ""

    def do_GET(self):
        path, query = urlparse(self.path).path, parse_qs(urlparse(self.path).query)
        if path == f"/apis/{VERSION}":
            return self.answer(200, {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": VERSION, "resources": [RESOURCE]})
        if not path.startswith(f"/apis/{VERSION}/"):
            return self.refuse(404, "NotFound")
        namespace, name = self.route()
        if "watch" in query:
            return self.watch(namespace)
        with lock:
            if name:
                found = flunders.get((namespace, name))
                return self.answer(200, found) if found else self.refuse(404, "NotFound")
            items = [found for (of, _), found in flunders.items() if namespace in ("", of)]
            self.answer(200, {"kind": "FlunderList", "apiVersion": VERSION, "metadata": {"resourceVersion": str(revision)}, "items": items})

    def watch(self, namespace):
        events = queue.Queue()
        with lock:
            watchers.append(events)
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while True:
            event = json.dumps(events.get()).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()

    def do_POST(self):
        flunder = self.body()
        namespace, _ = self.route()
        meta = flunder["metadata"]
        with lock:
            meta.update(namespace=namespace, uid=f"{namespace}-{meta['name']}-{revision}", creationTimestamp="2026-01-01T00:00:00Z")
            # The user that the front proxy forwards.
            meta.setdefault("annotations", {})["user"] = self.headers["x-remote-user"]
            flunders[namespace, meta["name"]] = flunder
            changed("ADDED", flunder)
            self.answer(201, flunder)

    def do_PATCH(self):
        patch, key = self.body(), self.route()
        with lock:
            flunders[key] = merged(flunders[key], patch)
            changed("MODIFIED", flunders[key])
            self.answer(200, flunders[key])

    def do_DELETE(self):
        self.body()
        with lock:
            flunder = flunders.pop(self.route(), None)
            if not flunder:
                return self.refuse(404, "NotFound")
            changed("DELETED", flunder)
            self.answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success", "details": {"uid": flunder["metadata"]["uid"]}})

    def log_message(self, *_):
        pass


port, certificate, key = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server = ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
server.daemon_threads = True
server.socket = context.wrap_socket(server.socket, server_side=True)
print("serving", server.server_port, flush=True)
server.serve_forever()
