"""Keeps the CronJob `backup-<name>` of each CronBackup. Run it with `kopf run`, here or in a Pod of the cluster."""

import os

import kopf
from kubernetes import client, config
from kubernetes.client.rest import ApiException

KIND = ("backups.example.com", "v1", "cronbackups")
# Attempts after errors, such as those of a gateway that restarts, in seconds.
BACKOFF = 0.2


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        config.load_incluster_config()
    else:
        config.load_kube_config()
    settings.networking.error_backoffs = [BACKOFF] * 100
    settings.watching.reconnect_backoff = BACKOFF


def desired(name, namespace, spec, body):
    command = ["backup", spec["target_database"], str(spec["retention_days"])]
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "backup", "command": command}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": f"backup-{name}", "namespace": namespace},
        "spec": {"schedule": spec["schedule"], "jobTemplate": {"spec": {"template": template}}},
    }
    kopf.append_owner_reference(job, owner=body)
    return job


def ensure(name, namespace, spec, body, logger):
    """Creates the CronJob, or replaces it if its schedule differs."""
    batch = client.BatchV1Api()
    job = desired(name, namespace, spec, body)
    try:
        found = batch.read_namespaced_cron_job(job["metadata"]["name"], namespace)
    except ApiException as error:
        if error.status != 404:
            raise
        batch.create_namespaced_cron_job(namespace, job)
        logger.info("created the CronJob")
        return
    if found.spec.schedule != spec["schedule"]:
        job["metadata"]["resourceVersion"] = found.metadata.resource_version
        batch.replace_namespaced_cron_job(found.metadata.name, namespace, job)
        logger.info("replaced the CronJob")


@kopf.on.resume(*KIND, backoff=BACKOFF)
@kopf.on.create(*KIND, backoff=BACKOFF)
@kopf.on.update(*KIND, backoff=BACKOFF)
def reconcile(name, namespace, spec, body, logger, **_):
    ensure(name, namespace, spec, body, logger)
    return {"message": f"{spec['target_database']} at {spec['schedule']}"}


@kopf.timer(*KIND, initial_delay=1, interval=0.5, backoff=BACKOFF)
def mend_drift(name, namespace, spec, body, logger, **_):
    ensure(name, namespace, spec, body, logger)


@kopf.on.delete(*KIND, backoff=BACKOFF)
def clean_up(name, namespace, logger, **_):
    try:
        client.BatchV1Api().delete_namespaced_cron_job(f"backup-{name}", namespace)
    except ApiException as error:
        if error.status != 404:
            raise
    logger.info("deleted the CronJob")
