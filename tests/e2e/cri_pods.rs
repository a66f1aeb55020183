//! Pods on a node of containerd with images of a private registry, and with handlers of the runtime.

use setpoint_testkit::{HANDLER, ImageRegistry, REGISTRY_USER};
use setpoint_tests::{Kubectl, eventually};

use crate::containerd::{CriNode, IMAGE};
use crate::events::wait_for_event;

fn apply(kubectl: &Kubectl, name: &str, image: &str, more: &str) {
    let pod = format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: production}}
spec:
  {more}
  containers:
  - {{name: main, image: '{image}', imagePullPolicy: IfNotPresent}}
"
    );
    let applied = kubectl.with("apply", &pod);
    assert!(applied.success, "{}", applied.stderr);
}

fn runs(kubectl: &Kubectl, name: &str) {
    kubectl.ok(&format!(
        "wait -n production --for=condition=Ready pod/{name} --timeout=60s"
    ));
}

/// An image that the registry gives to its user alone is pulled once the ServiceAccount of Pods has the Secret.
pub fn a_private_image_is_pulled_by_the_secret_of_the_account(node: &CriNode, kubectl: &Kubectl) {
    let Some(registry) = ImageRegistry::guarded() else {
        return;
    };
    let (repository, (user, password)) = (registry.name("private"), REGISTRY_USER);
    let image = format!("{repository}:1");
    node.containerd.push(&image, REGISTRY_USER);
    let absent = "imagePullSecrets: [{name: absent}]";
    apply(kubectl, "refused", &image, absent);
    eventually("kubectl shows that the image cannot be pulled", || {
        let listed = kubectl
            .run("get pod refused -n production --no-headers")
            .stdout;
        let reasons = ["ErrImagePull", "ImagePullBackOff"];
        let found = reasons.iter().any(|word| listed.contains(word));
        found.then_some(()).ok_or(listed)
    });
    let message = "kubelet Unable to retrieve some image pull secrets (absent)";
    let kind = "Warning FailedToRetrieveImagePullSecret";
    wait_for_event(kubectl, "pod refused", kind, message);
    let server = repository.split('/').next().unwrap_or_default();
    kubectl.ok(&format!(
        "create secret docker-registry pull -n production --docker-server={server} --docker-username={user} --docker-password={password}"
    ));
    let patch = r#"{"imagePullSecrets":[{"name":"pull"}]}"#;
    kubectl.ok(&format!(
        "patch serviceaccount default -n production -p {patch}"
    ));
    apply(kubectl, "granted", &image, "");
    runs(kubectl, "granted");
    let pulled = format!("kubelet Successfully pulled image \"{image}\" in ");
    wait_for_event(kubectl, "pod granted", "Normal Pulled", &pulled);
    // The image is on the node now, which is no reason to give it to others.
    let stranger = "serviceAccountName: stranger";
    kubectl.ok("create serviceaccount stranger -n production");
    apply(kubectl, "stranger", &image, stranger);
    apply(kubectl, "owner", &image, "");
    runs(kubectl, "owner");
    let present = format!(
        "kubelet Container image \"{image}\" already present on machine and can be accessed by the pod"
    );
    wait_for_event(kubectl, "pod owner", "Normal Pulled", &present);
    let refused = format!("kubelet Failed to pull image \"{image}\": ");
    wait_for_event(kubectl, "pod stranger", "Warning Failed", &refused);
    kubectl.ok("delete pod refused granted stranger owner -n production --now --timeout=60s");
}

/// A Pod that wants users of its own does not run without them, on a node that has none.
pub fn a_pod_has_users_of_its_own_or_does_not_run(kubectl: &Kubectl) {
    apply(kubectl, "users", IMAGE, "hostUsers: false");
    let path =
        "jsonpath={.items[*].status.runtimeHandlers[?(@.name==\"\")].features.userNamespaces}";
    let can = kubectl.ok(&format!("get nodes -o {path}"));
    if can.trim() == "true" {
        runs(kubectl, "users");
    } else {
        let message = "kubelet Failed to create pod sandbox: can't set `spec.hostUsers: false`, runtime does not support user namespaces";
        wait_for_event(
            kubectl,
            "pod users",
            "Warning FailedCreatePodSandBox",
            message,
        );
        let ip = kubectl.ok("get pod users -n production -o jsonpath={.status.podIP}");
        assert_eq!(ip, "", "only the runtime gives addresses");
    }
    kubectl.ok("delete pod users -n production --now --timeout=60s");
}

/// A Pod runs by the handler of its RuntimeClass, and says that the runtime lacks one.
pub fn a_pod_has_the_handler_of_its_runtime_class(kubectl: &Kubectl) {
    for handler in [HANDLER, "none"] {
        let class = format!(
            "apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {{name: {handler}}}
handler: {handler}
overhead: {{podFixed: {{cpu: 10m, memory: 1Mi}}}}
"
        );
        let applied = kubectl.with("apply", &class);
        assert!(applied.success, "{}", applied.stderr);
        let class = format!("runtimeClassName: {handler}");
        apply(kubectl, &format!("by-{handler}"), IMAGE, &class);
    }
    runs(kubectl, &format!("by-{HANDLER}"));
    let kind = "Warning FailedCreatePodSandBox";
    let message = "kubelet Failed to create pod sandbox: ";
    wait_for_event(kubectl, "pod by-none", kind, message);
    kubectl.ok(&format!(
        "delete pod by-{HANDLER} by-none -n production --now --timeout=60s"
    ));
}
