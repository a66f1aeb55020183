"""Reaches the API at each of its names in the cluster, as the account of this Pod. Prints who that is."""

import json
import os
import ssl
import urllib.request

FILES = "/var/run/secrets/kubernetes.io/serviceaccount/"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


def read(name):
    with open(FILES + name) as file:
        return file.read()


port = os.environ["KUBERNETES_SERVICE_PORT"]
trusted = ssl.create_default_context(cadata=read("ca.crt"))
headers = {"Authorization": "Bearer " + read("token"), "Content-Type": "application/json"}
print("in", read("namespace"))
for host in (os.environ["KUBERNETES_SERVICE_HOST"], "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"):
    url = f"https://{host}:{port}/apis/authentication.k8s.io/v1/selfsubjectreviews"
    request = urllib.request.Request(url, json.dumps(REVIEW).encode(), headers)
    with urllib.request.urlopen(request, context=trusted) as answer:
        print(host, json.load(answer)["status"]["userInfo"]["username"])
