"""Converts the Endpoints of endpoints.example.com: `hostPort: a:1` in v1 is `host: a` and `port: 1` in v2.

Usage: conversion_webhook.py PORT CERTIFICATE KEY
"""

import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def convert(found, version):
    converted = dict(found, apiVersion=version)
    if version.endswith("/v2") and "hostPort" in found:
        host, _, port = converted.pop("hostPort").rpartition(":")
        converted.update(host=host, port=int(port))
    elif version.endswith("/v1") and "host" in found:
        converted["hostPort"] = f"{converted.pop('host')}:{converted.pop('port')}"
    return converted


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["content-length"])))
        request = review["request"]
        objects = [convert(found, request["desiredAPIVersion"]) for found in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


port, certificate, key = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server = ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("serving", server.server_port, flush=True)
server.serve_forever()
