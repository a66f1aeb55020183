"""Uses the typed and the dynamic client as their documentation does. Prints `done` at the end."""

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException

config.load_kube_config()
core, apps = client.CoreV1Api(), client.AppsV1Api()


def deployment(replicas):
    labels = {"app": "web"}
    container = client.V1Container(name="web", image="nginx:1.25")
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
    )
    spec = client.V1DeploymentSpec(
        replicas=replicas, selector=client.V1LabelSelector(match_labels=labels), template=template
    )
    return client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)


def workloads():
    apps.create_namespaced_deployment("default", deployment(2))
    for event in watch.Watch().stream(apps.list_namespaced_deployment, "default", timeout_seconds=60):
        if event["object"].status.ready_replicas == 2:
            break
    else:
        raise AssertionError("the Deployment did not become ready")
    pods = core.list_namespaced_pod("default", label_selector="app=web", limit=1)
    assert len(pods.items) == 1 and pods.metadata._continue
    rest = core.list_namespaced_pod("default", label_selector="app=web", limit=1, _continue=pods.metadata._continue)
    assert len(rest.items) == 1 and rest.items[0].metadata.name != pods.items[0].metadata.name
    apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 1}})
    assert apps.read_namespaced_deployment_scale("web", "default").spec.replicas == 1
    apps.replace_namespaced_deployment("web", "default", deployment(1))
    apps.delete_namespaced_deployment("web", "default", propagation_policy="Foreground")


def errors():
    try:
        core.read_namespaced_config_map("missing", "default")
    except ApiException as error:
        assert error.status == 404 and "NotFound" in error.body
    else:
        raise AssertionError("the ConfigMap does not exist")


def dynamic_client():
    resources = dynamic.DynamicClient(client.ApiClient())
    config_maps = resources.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b"}}
    config_maps.server_side_apply(body, namespace="default", field_manager="python")
    assert config_maps.get(name="one", namespace="default").data["a"] == "b"
    config_maps.patch({"metadata": {"name": "one"}, "data": {"a": "c"}}, namespace="default",
                      content_type="application/merge-patch+json")
    assert config_maps.get(name="one", namespace="default").data["a"] == "c"
    for event in config_maps.watch(namespace="default", name="one", timeout=30):
        assert event["type"] == "ADDED" and event["object"].data["a"] == "c"
        break
    config_maps.delete(name="one", namespace="default")


def from_dictionaries():
    job = {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "busybox"}]}}},
    }
    utils.create_from_dict(client.ApiClient(), job)
    assert client.BatchV1Api().read_namespaced_job("one", "default").spec.backoff_limit == 6
    autoscalers = client.AutoscalingV2Api().list_horizontal_pod_autoscaler_for_all_namespaces()
    assert autoscalers.items == []
    assert client.VersionApi().get_code().major == "1"


for step in (workloads, errors, dynamic_client, from_dictionaries):
    step()
print("done")
