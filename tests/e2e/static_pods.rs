//! Static Pods of a node, and their mirror Pods.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use setpoint_tests::{Cluster, Kubectl, Size, eventually};
use tempfile::TempDir;

use crate::web::text;

const AGENT: &str = "node-agent-0";
const HASH: &str = "/metadata/annotations/kubernetes.io~1config.hash";
const MIRROR: &str = "/metadata/annotations/kubernetes.io~1config.mirror";

/// A cluster of one node with a directory of manifests.
struct Fixture {
    cluster: Cluster,
    kubectl: Kubectl,
    folder: TempDir,
}

impl Fixture {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(folder.path().join("manifests")).expect("it is writable");
        let directory = folder.path().join("manifests").display().to_string();
        let size = Size {
            process_nodes: 1,
            simulated_nodes: 0,
            ..Size::default()
        };
        let variable = ("SETPOINT__STATIC_PODS__DIRECTORY", directory.as_str());
        let cluster = Cluster::with_environment(size, variable);
        let kubectl = cluster.kubectl();
        Self {
            cluster,
            kubectl,
            folder,
        }
    }

    fn manifest(&self, name: &str) -> PathBuf {
        self.folder.path().join("manifests").join(name)
    }

    /// Writes the manifest of a Pod that records its starts and ends as those of a version.
    fn write(&self, name: &str, version: &str) {
        let text = self.pod(name, version);
        put(&self.manifest(&format!("{name}.yaml")), &text);
    }

    fn pod(&self, name: &str, version: &str) -> String {
        let record = self.folder.path().join(name).display().to_string();
        // Ends after half a second, which is less than its grace period.
        let script = format!(
            "trap \"sleep 0.5; echo end {version} >> {record}; exit 0\" TERM; \
             echo start {version} >> {record}; while true; do sleep 0.1; done"
        );
        format!(
            "
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec:
  priorityClassName: system-node-critical
  terminationGracePeriodSeconds: 20
  containers:
  - {{name: main, image: none, command: [sh, -c, '{script}']}}
"
        )
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.manifest(&format!("{name}.yaml"))).expect("it was written");
    }

    /// Returns what a Pod has recorded.
    fn record(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until a Pod has recorded this, and nothing else.
    fn until_recorded(&self, name: &str, expected: &[&str]) {
        eventually(&format!("what Pod {name} records"), || {
            let recorded = self.record(name);
            (recorded == expected)
                .then_some(())
                .ok_or(recorded.join(", "))
        });
    }

    /// Waits until the mirror Pod satisfies `wanted`, and returns it.
    fn until(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("mirror Pod {name}"), || {
            let found = self.kubectl.run(&format!("get pod {name} -o json"));
            let pod = serde_json::from_str(&found.stdout).unwrap_or(Value::Null);
            let holds = found.success && wanted(&pod);
            holds
                .then(|| pod.clone())
                .ok_or(found.stdout + &found.stderr)
        })
    }

    fn until_running(&self, name: &str) -> Value {
        self.until(name, is_running)
    }

    /// Waits until Pods of these names are all that there are.
    fn until_pods(&self, expected: &str) {
        eventually("the names of Pods", || {
            let names = self
                .kubectl
                .ok("get pods -o jsonpath={.items[*].metadata.name}");
            (names == expected).then_some(()).ok_or(names)
        });
    }

    /// Returns the messages of the Events about manifests.
    fn problems(&self) -> Vec<String> {
        let events = self
            .kubectl
            .json("get events -A --field-selector=reason=StaticPodManifest");
        let events = events["items"].as_array().cloned().unwrap_or_default();
        let message = |event: &Value| {
            assert_eq!(text(event, "/involvedObject/name"), "node-0");
            text(event, "/message").to_owned()
        };
        events.iter().map(message).collect()
    }

    fn until_problem(&self, expected: &str) {
        eventually(&format!("an Event: {expected}"), || {
            let problems = self.problems();
            let known = problems.iter().any(|problem| problem.contains(expected));
            known.then_some(()).ok_or(problems.join("\n"))
        });
    }
}

/// Replaces a file as a whole.
fn put(path: &Path, text: &str) {
    let hidden = path.with_file_name(".new");
    fs::write(&hidden, text).expect("it is writable");
    fs::rename(&hidden, path).expect("it is writable");
}

fn is_running(pod: &Value) -> bool {
    text(pod, "/status/phase") == "Running" && pod.pointer("/metadata/deletionTimestamp").is_none()
}

fn uid(pod: &Value) -> &str {
    text(pod, "/metadata/uid")
}

fn container(pod: &Value) -> &str {
    text(pod, "/status/containerStatuses/0/containerID")
}

#[test]
fn a_manifest_is_a_pod_of_its_node_that_the_api_shows() {
    let mut fixture = Fixture::start();
    fixture.write("web", "1");
    let mirror = fixture.until_running("web-node-0");
    fixture.until_recorded("web", &["start 1"]);
    assert_eq!(text(&mirror, HASH), text(&mirror, MIRROR));
    assert_eq!(text(&mirror, "/metadata/ownerReferences/0/kind"), "Node");
    assert_eq!(text(&mirror, "/spec/nodeName"), "node-0");
    assert_eq!(mirror["spec"]["priority"], 2_000_001_000);
    fixture.until("web-node-0", |pod| {
        pod.pointer("/status/containerStatuses/0/ready") == Some(&true.into())
    });
    let kubectl = &fixture.kubectl;
    assert_eq!(kubectl.ok("exec web-node-0 -- echo inside"), "inside\n");
    kubectl.ok("logs web-node-0");
    eventually("its Events are those of the mirror Pod", || {
        let told = kubectl.ok("describe pod web-node-0");
        let known = told.contains("Started container main");
        known.then_some(()).ok_or(told)
    });
    eventually("its decisions are those of the mirror Pod", || {
        let why = fixture.cluster.setpoint_at(0, "why pod/web-node-0").stdout;
        // The first of them are left out of the answer once there are many.
        let known = why.contains("Reconciles of node-agent-0:")
            && why.contains("annotations[kubernetes.io/config.mirror]");
        known.then_some(()).ok_or(why)
    });
    deleted_mirrors_come_back(&fixture, &mirror);
    broken_manifests_are_told_and_change_nothing(&fixture);
    changes_follow_the_end_of_the_old_pod(&fixture);
    an_agent_that_is_killed_adopts_them(&mut fixture);
    fixture.remove("web");
    fixture.until_pods("");
    fixture.until_recorded("web", &["start 1", "end 1", "start 2", "end 2"]);
    mirrors_of_nothing_are_deleted(&fixture);
    let pods = fixture.cluster.node("node-0").join("pods");
    let left = fs::read_dir(pods).expect("it is the agent's").count();
    assert_eq!(left, 0, "nothing is left of them");
}

fn deleted_mirrors_come_back(fixture: &Fixture, mirror: &Value) {
    for flags in ["--wait=false", "--wait=false --grace-period=0 --force"] {
        let before = fixture.until_running("web-node-0");
        fixture
            .kubectl
            .ok(&format!("delete pod web-node-0 {flags}"));
        let after = fixture.until("web-node-0", |pod| {
            uid(pod) != uid(&before) && is_running(pod) && !container(pod).is_empty()
        });
        assert_eq!(container(&after), container(mirror), "it goes on");
        assert_eq!(text(&after, HASH), text(mirror, HASH));
    }
    assert_eq!(fixture.record("web"), ["start 1"]);
    let drained = fixture.kubectl.ok("drain node-0 --ignore-daemonsets");
    assert!(!drained.contains("web-node-0"), "{drained}");
    fixture.kubectl.ok("uncordon node-0");
}

fn broken_manifests_are_told_and_change_nothing(fixture: &Fixture) {
    let good = fixture.pod("web", "1");
    put(&fixture.manifest("web.yaml"), &good[..good.len() / 2]);
    let named = good.replace("spec:\n", "spec:\n  serviceAccountName: default\n");
    put(
        &fixture.manifest("named.yaml"),
        &named.replace("name: web,", "name: named,"),
    );
    fixture.until_problem("static pods may not reference serviceaccounts");
    fixture.until_problem("web.yaml: couldn't parse as pod(");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(fixture.problems().len(), 2, "each is told once");
    fixture.until_pods("web-node-0");
    assert_eq!(fixture.record("web"), ["start 1"]);
    put(&fixture.manifest("web.yaml"), &good);
    fs::remove_file(fixture.manifest("named.yaml")).expect("it was written");
}

fn changes_follow_the_end_of_the_old_pod(fixture: &Fixture) {
    let before = fixture.until_running("web-node-0");
    fixture.write("web", "2");
    let after = fixture.until("web-node-0", |pod| {
        text(pod, HASH) != text(&before, HASH) && is_running(pod)
    });
    assert_ne!(uid(&before), uid(&after));
    fixture.until_recorded("web", &["start 1", "end 1", "start 2"]);
}

fn an_agent_that_is_killed_adopts_them(fixture: &mut Fixture) {
    let before = fixture.until_running("web-node-0");
    fixture.cluster.process(AGENT).restart();
    fixture.write("other", "1");
    fixture.until_running("other-node-0");
    let after = fixture.until_running("web-node-0");
    assert_eq!(
        (uid(&after), container(&after)),
        (uid(&before), container(&before))
    );
    assert_eq!(
        fixture.record("web").last().map(String::as_str),
        Some("start 2")
    );
    // Their manifests go while no agent runs.
    fixture.cluster.process(AGENT).kill();
    fixture.remove("other");
    fixture.cluster.process(AGENT).restart();
    fixture.until_pods("web-node-0");
    fixture.until_recorded("web", &["start 1", "end 1", "start 2"]);
}

/// A Pod with the annotation is not run, and is not its creator's.
fn mirrors_of_nothing_are_deleted(fixture: &Fixture) {
    let mirror = "
apiVersion: v1
kind: Pod
metadata: {name: lost-node-0, annotations: {kubernetes.io/config.mirror: x}}
spec:
  nodeName: node-0
  containers: [{name: main, image: none, command: [sh, -c, 'exec sleep 1000']}]
";
    let created = fixture.kubectl.with("create", mirror);
    assert!(created.success, "{}", created.stderr);
    fixture.until_pods("");
}

#[test]
fn static_pods_run_without_a_gateway_and_are_shown_when_one_answers() {
    let mut fixture = Fixture::start();
    fixture.write("first", "1");
    let before = fixture.until_running("first-node-0");
    fixture.cluster.process("gateway-0").kill();
    fixture.write("second", "1");
    fixture.until_recorded("second", &["start 1"]);
    fixture.cluster.process(AGENT).restart();
    fixture.write("third", "1");
    fixture.until_recorded("third", &["start 1"]);
    fixture.write("second", "2");
    fixture.until_recorded("second", &["start 1", "end 1", "start 2"]);
    fixture.remove("third");
    fixture.until_recorded("third", &["start 1", "end 1"]);
    assert_eq!(fixture.record("first"), ["start 1"], "it is adopted");

    fixture.cluster.process("gateway-0").restart();
    fixture.cluster.wait_until_ready();
    fixture.until_pods("first-node-0 second-node-0");
    fixture.until_running("second-node-0");
    let after = fixture.until_running("first-node-0");
    assert_eq!(
        (uid(&after), container(&after)),
        (uid(&before), container(&before))
    );
    for (name, expected) in [
        ("first", &["start 1"][..]),
        ("second", &["start 1", "end 1", "start 2"]),
        ("third", &["start 1", "end 1"]),
    ] {
        assert_eq!(fixture.record(name), expected, "{name}");
    }
}
