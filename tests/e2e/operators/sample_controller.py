"""Keeps the Deployment of each Foo, in the form of upstream's sample-controller: reflectors, a queue of keys, a worker,
and leader election on a Lease. The argument is the identity of this replica."""

import logging
import os
import queue
import sys
import threading
import time

from kubernetes import client, config, dynamic
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

NAMESPACE = "default"
GROUP_VERSION = "samplecontroller.example.com/v1alpha1"
RETRY_SECONDS = 0.2


class Queue:
    """A queue in which each key waits once."""

    def __init__(self):
        self.keys, self.waiting, self.lock = queue.Queue(), set(), threading.Lock()

    def add(self, key):
        with self.lock:
            if key not in self.waiting:
                self.waiting.add(key)
                self.keys.put(key)

    def get(self):
        key = self.keys.get()
        with self.lock:
            self.waiting.discard(key)
        return key


class Reflector:
    """Keeps a copy of all objects of a kind by list and watch, and enqueues the keys that `key_of` names."""

    def __init__(self, resource, work, key_of):
        self.resource, self.work, self.key_of = resource, work, key_of
        self.objects, self.synced = {}, threading.Event()

    def run(self):
        while True:
            try:
                self.follow()
            except Exception as error:
                logging.warning("the watch of %s ended: %s", self.resource.kind, error)
                time.sleep(RETRY_SECONDS)

    def follow(self):
        listed = self.resource.get(namespace=NAMESPACE)
        before, self.objects = self.objects, {item.metadata.name: item for item in listed.items}
        self.synced.set()
        for item in [*before.values(), *self.objects.values()]:
            self.enqueue(item)
        version = listed.metadata.resourceVersion
        for event in self.resource.watch(namespace=NAMESPACE, resource_version=version, timeout=60):
            item = event["object"]
            if event["type"] == "DELETED":
                self.objects.pop(item.metadata.name, None)
            else:
                self.objects[item.metadata.name] = item
            self.enqueue(item)

    def enqueue(self, item):
        key = self.key_of(item)
        if key:
            self.work.add(key)


def owner_of(item):
    """Returns the name of the Foo that controls an object."""
    for reference in item.metadata.ownerReferences or []:
        if reference.controller and reference.kind == "Foo":
            return reference.name
    return None


class Controller:
    def __init__(self):
        resources = dynamic.DynamicClient(client.ApiClient()).resources
        self.foos = resources.get(api_version=GROUP_VERSION, kind="Foo")
        self.deployments = resources.get(api_version="apps/v1", kind="Deployment")
        self.events = resources.get(api_version="v1", kind="Event")
        self.work = Queue()
        self.known_foos = Reflector(self.foos, self.work, lambda foo: foo.metadata.name)
        self.known_deployments = Reflector(self.deployments, self.work, owner_of)
        for reflector in (self.known_foos, self.known_deployments):
            threading.Thread(target=reflector.run, daemon=True).start()

    def run(self):
        for reflector in (self.known_foos, self.known_deployments):
            reflector.synced.wait()
        logging.info("started leading")
        while True:
            name = self.work.get()
            try:
                self.sync(name)
            except Exception as error:
                logging.warning("%s: %s", name, error)
                threading.Timer(RETRY_SECONDS, self.work.add, [name]).start()

    def sync(self, name):
        foo = self.known_foos.objects.get(name)
        if foo is None or foo.metadata.deletionTimestamp:
            return
        deployment = self.known_deployments.objects.get(foo.spec.deploymentName)
        if deployment is None:
            deployment = self.deployments.create(self.desired(foo), namespace=NAMESPACE)
            logging.info("created Deployment %s", deployment.metadata.name)
        if owner_of(deployment) != name:
            self.record(foo, "ErrResourceExists", f"{deployment.metadata.name} is not managed by Foo")
            return
        if foo.spec.replicas is not None and foo.spec.replicas != deployment.spec.replicas:
            body = deployment.to_dict()
            body["spec"]["replicas"] = foo.spec.replicas
            deployment = self.deployments.replace(body, namespace=NAMESPACE)
        self.update_status(foo, deployment)

    def desired(self, foo):
        labels = {"controller": foo.metadata.name}
        owner = {
            "apiVersion": foo.apiVersion, "kind": foo.kind, "name": foo.metadata.name, "uid": foo.metadata.uid,
            "controller": True, "blockOwnerDeletion": True,
        }
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": foo.spec.deploymentName, "ownerReferences": [owner]},
            "spec": {
                "replicas": foo.spec.replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "nginx", "image": "nginx:1.25"}]},
                },
            },
        }

    def update_status(self, foo, deployment):
        available = (deployment.status and deployment.status.availableReplicas) or 0
        if (foo.status and foo.status.availableReplicas) != available:
            body = foo.to_dict()
            body["status"] = {"availableReplicas": available}
            self.foos.status.replace(body, namespace=NAMESPACE)

    def record(self, foo, reason, message):
        reference = {"apiVersion": foo.apiVersion, "kind": foo.kind, "name": foo.metadata.name,
                     "namespace": NAMESPACE, "uid": foo.metadata.uid}
        event = {
            "apiVersion": "v1", "kind": "Event", "metadata": {"generateName": f"{foo.metadata.name}."},
            "involvedObject": reference, "reason": reason, "message": message, "type": "Warning",
            "source": {"component": "sample-controller"},
        }
        self.events.create(event, namespace=NAMESPACE)


def main(identity):
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    config.load_kube_config()
    controller = Controller()
    election = electionconfig.Config(
        LeaseLock("sample-controller", NAMESPACE, identity), lease_duration=6, renew_deadline=5, retry_period=1,
        onstarted_leading=controller.run, onstopped_leading=lambda: os._exit(1),
    )
    leaderelection.LeaderElection(election).run()


main(sys.argv[1])
