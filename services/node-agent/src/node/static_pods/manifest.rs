//! The Pod of a manifest, as the kubelet has it. Pure.

use std::path::Path;

use jiff::Timestamp;
use prost::Message as _;
use serde_json::Value;
use setpoint_codec::{kind_of, strict};
use setpoint_kinds::validation::podspec::MIRROR;
use setpoint_kinds::{Target, create, priorityclass};
use setpoint_model::hash::fnv128a;
use setpoint_model::{names, pod_references};
use setpoint_proto::core::{Pod, Toleration};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Reason, Resource as _};

use super::{HASH, SEEN, SOURCE};

/// The namespace of a Pod that names none.
const NAMESPACE: &str = "default";

/// A reason why a manifest is no static Pod.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is no Pod at all; with the reason.
    #[error("couldn't parse as pod({0}), please check config file")]
    Malformed(String),
    /// It has no name.
    #[error("invalid pod: name is needed for the pod")]
    Nameless,
    /// It is not valid; with the reason.
    #[error("invalid pod: {0}")]
    Invalid(String),
    /// It names an object of the API, of this resource.
    #[error("static pods may not reference {0}")]
    Reference(&'static str),
    /// It has a volume of an unknown type; with the reason.
    #[error("{0}")]
    Volume(String),
}

/// A manifest that was read.
#[derive(Debug)]
pub struct Manifest {
    /// The Pod.
    pub pod: Pod,
    /// The parts of the document that are no fields of a Pod, in the words of Kubernetes: `unknown field "spec.foo"`.
    pub unknown: Vec<String>,
}

/// Reads the manifest of a Pod of `node`, in YAML or JSON.
///
/// The uid is a hash of the Pod, the node and the path of the file: a manifest with another content is another Pod, and
/// the same one is the same Pod after a restart of the agent.
///
/// # Errors
/// If it is malformed or invalid, or names an object of the API.
pub fn read(text: &[u8], file: &Path, node: &str, now: Timestamp) -> Result<Manifest, Error> {
    let document = setpoint_document::yaml(text).map_err(Error::Malformed)?;
    check_kind(&document)?;
    let (kind, json) = (kind_of::<Pod>(), document.to_string());
    let object = kind.from_json(json.as_bytes());
    let object = object.map_err(|error| Error::Malformed(error.to_string()))?;
    let pod = object.into_any().downcast::<Pod>();
    let mut pod = *pod.expect("an object of the kind Pod is one");
    if pod.metadata.name.is_empty() {
        return Err(Error::Nameless);
    }
    settle(&mut pod, file, node, now);
    let pod = valid(pod).map_err(|error| Error::Invalid(error.message))?;
    match pod_references::api_object(&pod) {
        Ok(None) => {}
        Ok(Some(resource)) => return Err(Error::Reference(resource)),
        Err(problem) => return Err(Error::Volume(problem)),
    }
    let unknown = strict::unknown_fields(kind, json.as_bytes());
    Ok(Manifest { pod, unknown })
}

fn check_kind(document: &Value) -> Result<(), Error> {
    let malformed = |problem: String| Err(Error::Malformed(problem));
    let text = |field: &str| document.get(field).and_then(Value::as_str);
    match (text("apiVersion"), text("kind")) {
        (_, None | Some("")) => malformed("Object 'Kind' is missing".to_owned()),
        (None | Some(""), _) => malformed("Object 'apiVersion' is missing".to_owned()),
        (Some(Pod::API_VERSION), Some(Pod::KIND)) => Ok(()),
        (Some(version), Some(kind)) => malformed(format!(
            "it is a {kind} of {version}, not a Pod of {}",
            Pod::API_VERSION
        )),
    }
}

/// Gives a Pod what the node decides: its identity, its node, and that it stays whatever taints the node has.
fn settle(pod: &mut Pod, file: &Path, node: &str, now: Timestamp) {
    let uid = uid(pod, file, node);
    let meta = std::mem::take(&mut pod.metadata);
    let namespace = match meta.namespace.is_empty() {
        true => NAMESPACE.to_owned(),
        false => meta.namespace,
    };
    let mut annotations = meta.annotations;
    annotations.remove(MIRROR);
    annotations.insert(HASH.to_owned(), uid.clone());
    annotations.insert(SEEN.to_owned(), now.to_string());
    annotations.insert(SOURCE.to_owned(), "file".to_owned());
    pod.metadata = ObjectMeta {
        name: format!("{}-{node}", meta.name),
        namespace,
        uid,
        creation_timestamp: now.into(),
        labels: meta.labels,
        annotations,
        finalizers: meta.finalizers,
        ..ObjectMeta::default()
    };
    let spec = &mut pod.spec;
    node.clone_into(&mut spec.node_name);
    if spec.service_account_name.is_empty() {
        spec.service_account_name.clone_from(&spec.service_account);
    }
    let of_class = priorityclass::system_value(&spec.priority_class_name);
    spec.priority = spec.priority.or(of_class);
    let always = Toleration {
        operator: "Exists".to_owned(),
        effect: "NoExecute".to_owned(),
        ..Toleration::default()
    };
    if !spec.tolerations.contains(&always) {
        spec.tolerations.push(always);
    }
}

/// Returns 32 hexadecimal digits.
fn uid(pod: &Pod, file: &Path, node: &str) -> String {
    let mut content = pod.encode_to_vec();
    let place = format!("host:{node}file:{}", file.display());
    content.extend_from_slice(place.as_bytes());
    format!("{:032x}", fnv128a(&content))
}

/// Sets defaults and the first status of a Pod, and validates it as a new one of the API.
fn valid(mut pod: Pod) -> Result<Pod, ApiError> {
    let (kind, meta) = (kind_of::<Pod>(), &pod.metadata);
    let target = Target::new(kind, &meta.namespace, &meta.name, "")?;
    create::prepare(&target, &mut pod);
    create::validate(&target, &mut pod)?;
    match names::validate_dns_label(&pod.metadata.namespace).as_slice() {
        [] => Ok(pod),
        [problem, ..] => {
            let problem = format!(
                "metadata.namespace: Invalid value: {:?}: {problem}",
                pod.metadata.namespace
            );
            Err(ApiError::new(Reason::Invalid, problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: &str = "
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  containers:
  - {name: main, image: none, command: [sleep, '1000']}
";

    fn read_as(text: &str, file: &str, node: &str) -> Result<Manifest, Error> {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        read(text.as_bytes(), Path::new(file), node, now)
    }

    fn web(text: &str) -> Pod {
        let manifest = read_as(text, "/pods/web.yaml", "node-1").unwrap();
        assert_eq!(manifest.unknown, [] as [&str; 0]);
        manifest.pod
    }

    fn problem(text: &str) -> String {
        let error = read_as(text, "/pods/web.yaml", "node-1").unwrap_err();
        error.to_string()
    }

    #[test]
    fn a_manifest_is_a_pod_of_the_node_with_the_annotations_of_its_source() {
        let pod = web(WEB);
        let meta = &pod.metadata;
        assert_eq!(
            (meta.namespace.as_str(), meta.name.as_str()),
            ("default", "web-node-1")
        );
        assert_eq!(meta.labels["app"], "web");
        assert_eq!(meta.annotations["kubernetes.io/config.source"], "file");
        assert_eq!(meta.annotations["kubernetes.io/config.hash"], meta.uid);
        let seen = &meta.annotations["kubernetes.io/config.seen"];
        assert_eq!(seen, "2023-11-14T22:13:20Z");
        assert_eq!(pod.spec.node_name, "node-1");
        let [toleration] = pod.spec.tolerations.as_slice() else {
            panic!("{:?}", pod.spec.tolerations);
        };
        let toleration = (toleration.operator.as_str(), toleration.effect.as_str());
        assert_eq!(toleration, ("Exists", "NoExecute"));
        assert_eq!(pod.spec.restart_policy, "Always", "defaults are set");
        assert_eq!(pod.status.phase, "Pending");
        assert_eq!(pod.status.qos_class, "BestEffort");
    }

    #[test]
    fn json_is_read_as_yaml_is() {
        let json = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "none", "command": ["sleep", "1000"]}]}}"#;
        assert_eq!(web(json), web(WEB));
    }

    #[test]
    fn the_uid_follows_from_content_file_and_node_alone() {
        let uid = |text: &str, file: &str, node: &str| {
            read_as(text, file, node).unwrap().pod.metadata.uid
        };
        let own = uid(WEB, "/a", "n");
        assert_eq!(own.len(), 32);
        assert!(own.bytes().all(|digit| digit.is_ascii_hexdigit()));
        assert_eq!(own, uid(&format!("# a comment\n{WEB}"), "/a", "n"));
        assert_ne!(own, uid(&WEB.replace("1000", "1001"), "/a", "n"));
        assert_ne!(own, uid(WEB, "/b", "n"));
        assert_ne!(own, uid(WEB, "/a", "m"));
    }

    #[test]
    fn what_only_the_api_or_the_agent_sets_is_not_taken_from_a_manifest() {
        let copied = WEB.replace(
            "  name: web\n",
            "  name: web
  uid: ../../etc
  resourceVersion: '7'
  generation: 9
  deletionTimestamp: 2020-01-01T00:00:00Z
  annotations: {kubernetes.io/config.mirror: x, kubernetes.io/config.source: api, own: kept}
",
        ) + "status: {phase: Failed}\n";
        let pod = web(&copied);
        let meta = &pod.metadata;
        assert_eq!(meta.uid.len(), 32);
        assert_eq!((meta.resource_version.as_str(), meta.generation), ("", 1));
        assert_eq!(meta.deletion_timestamp, None);
        assert_eq!(meta.annotations.get(MIRROR), None);
        assert_eq!(meta.annotations[SOURCE], "file");
        assert_eq!(meta.annotations["own"], "kept");
        assert_eq!(pod.status.phase, "Pending");
    }

    #[test]
    fn the_classes_of_every_cluster_have_their_priority_before_the_api_answers() {
        let class = |lines: &str| web(&format!("{WEB}  {lines}")).spec.priority;
        assert_eq!(
            class("priorityClassName: system-node-critical"),
            Some(2_000_001_000)
        );
        assert_eq!(class("priorityClassName: other"), None);
        assert_eq!(class("priority: 7"), Some(7));
    }

    #[test]
    fn a_broken_manifest_is_told_in_the_words_of_the_kubelet() {
        let no_name = WEB.replace("name: web\n", "x: y\n");
        assert_eq!(problem(&no_name), "invalid pod: name is needed for the pod");
        assert_eq!(
            problem("metadata: {name: web}"),
            "couldn't parse as pod(Object 'Kind' is missing), please check config file"
        );
        assert_eq!(
            problem(&WEB.replace("kind: Pod", "kind: PodList")),
            "couldn't parse as pod(it is a PodList of v1, not a Pod of v1), please check config file"
        );
        for (text, expected) in [
            ("{", "couldn't parse as pod("),
            ("", "couldn't parse as pod(Object 'Kind' is missing)"),
            (
                &WEB.replace("[sleep, '1000']", "sleep"),
                "couldn't parse as pod(Pod in version \"v1\" cannot be handled as a Pod: ",
            ),
            (
                &WEB.replace("name: web\n", "name: Web_\n"),
                "invalid pod: Pod \"Web_-node-1\" is invalid: metadata.name: Invalid value: \"Web_-node-1\"",
            ),
            (
                &WEB.replace("name: web\n", "name: web\n  namespace: ../a\n"),
                "invalid pod: metadata.namespace: Invalid value: \"../a\": ",
            ),
            (
                &WEB.replace("image: none,", ""),
                "invalid pod: Pod \"web-node-1\" is invalid: spec.containers[0].image: Required value",
            ),
        ] {
            let told = problem(text);
            assert!(told.starts_with(expected), "{told}");
        }
    }

    #[test]
    fn objects_of_the_api_are_refused() {
        let with = |lines: &str| problem(&format!("{WEB}{lines}"));
        for (lines, resource) in [
            ("  serviceAccountName: default", "serviceaccounts"),
            ("  serviceAccount: default", "serviceaccounts"),
            ("  imagePullSecrets: [{name: a}]", "secrets"),
            (
                "    envFrom: [{configMapRef: {name: a, optional: true}}]",
                "configmaps",
            ),
            (
                "    env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}]",
                "secrets",
            ),
            ("  volumes: [{name: a, secret: {secretName: a}}]", "secrets"),
            (
                "  volumes: [{name: a, persistentVolumeClaim: {claimName: a}}]",
                "persistentvolumeclaims",
            ),
            (
                "  volumes: [{name: a, csi: {driver: example.com}}]",
                "csidrivers (via CSI volumes)",
            ),
        ] {
            let manifest = match lines.starts_with("    ") {
                // Fields of the container.
                true => {
                    let block = WEB.replace(
                        "  - {name: main, image: none, command: [sleep, '1000']}",
                        "  - name: main\n    image: none",
                    );
                    problem(&format!("{block}{lines}"))
                }
                false => with(lines),
            };
            assert_eq!(
                manifest,
                format!("static pods may not reference {resource}")
            );
        }
        let empty_dir = format!("{WEB}  volumes: [{{name: a, emptyDir: {{}}}}]");
        assert_eq!(web(&empty_dir).spec.volumes.len(), 1);
    }

    #[test]
    fn fields_that_no_pod_has_are_told() {
        let text = WEB.replace("labels:", "lables:");
        let manifest = read_as(&text, "/a", "n").unwrap();
        assert_eq!(manifest.unknown, ["unknown field \"metadata.lables\""]);
    }
}
