//! The operator of kopf in a Pod of the cluster: a client of the API by the usual conventions, with no more rights than
//! its Role has.

use std::path::Path;

use nix::unistd::Uid;
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use super::{apply, beside, define, until, until_gone};
use crate::clients::client;
use crate::engine::{Engine, shell};

const JOB: &str = "cronjob/backup-nightly";
const BACKUP: &str = "apiVersion: backups.example.com/v1
kind: CronBackup
metadata: {name: nightly}
spec: {schedule: '0 2 * * *', target_database: shop}
";
/// The user that the operator is.
const USER: &str = "system:serviceaccount:default:cronbackup";
/// The verbs of the operator's Role for CronJobs, and those that it has first.
const VERBS: [&str; 2] = ["[get, create, update, delete]", "[get, update, delete]"];
/// The image for the engine.
const IMAGE: &str = "setpoint-test/operator:1";

/// The programs of the operator's Pod.
struct Programs {
    image: &'static str,
    /// The folder of `python`, which has kopf.
    python: String,
    /// The folder of the scripts.
    scripts: String,
}

impl Programs {
    fn pod(&self) -> String {
        let Self {
            image,
            python,
            scripts,
        } = self;
        format!(
            "apiVersion: v1
kind: Pod
metadata: {{name: operator}}
spec:
  serviceAccountName: cronbackup
  hostAliases: [{{ip: 192.0.2.7, hostnames: [backups.example.com]}}]
  initContainers:
  - name: reach
    image: {image}
    command: ['{python}', '{scripts}/reach_api.py']
  - name: hosts
    image: {image}
    command: [cat, /etc/hosts]
  containers:
  - name: operator
    image: {image}
    command: ['{python}', -m, kopf, run, --standalone, --namespace=default, '{scripts}/cronbackup.py']
    env:
    - {{name: KUBERNETES_PORT, value: own}}
    - {{name: PYTHONDONTWRITEBYTECODE, value: '1'}}
"
        )
    }
}

#[test]
fn an_operator_in_a_pod_of_processes_may_do_what_its_role_says() {
    if !Uid::effective().is_root() {
        eprintln!(
            "SKIPPED: only an agent that is root mounts token, CA and hosts file for processes"
        );
        return;
    }
    let Some(kopf) = client("kopf") else { return };
    let cluster = Cluster::start(Size {
        process_nodes: 1,
        simulated_nodes: 0,
        ..Size::default()
    });
    let scripts = beside("cronbackup.py");
    let programs = Programs {
        image: "kopf",
        python: kopf.with_file_name("python3").display().to_string(),
        scripts: folder(&scripts),
    };
    it_operates(&cluster.kubectl(), &programs);
}

#[test]
fn an_operator_in_a_pod_of_an_engine_may_do_what_its_role_says() {
    let Some(kopf) = client("kopf") else { return };
    let Some(engine) = Engine::find() else { return };
    import(&kopf);
    let cluster = engine.cluster();
    let programs = Programs {
        image: IMAGE,
        python: "/usr/bin/python3".to_owned(),
        scripts: "/operator".to_owned(),
    };
    it_operates(&cluster.kubectl(), &programs);
    cluster.kubectl().ok("delete pod operator --timeout=60s");
    drop(cluster);
    engine.docker(&format!("rmi {IMAGE}"));
}

fn folder(path: &Path) -> String {
    let folder = path.parent().expect("a file has a folder");
    folder.display().to_string()
}

/// Makes the image of the operator: this machine's Python with its libraries and kopf.
fn import(kopf: &Path) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bin = self::folder(kopf);
    let scripts = self::folder(&beside("cronbackup.py"));
    let path = |name: &str| format!("import sysconfig; print(sysconfig.get_path(\"{name}\"))");
    let (stdlib, site) = (path("stdlib"), path("purelib"));
    let script = format!(
        "python=$(readlink -f {bin}/python3); stdlib=$($python -c '{stdlib}'); site=$({bin}/python3 -c '{site}')
         mkdir -p usr/bin bin tmp etc operator && cp \"$python\" usr/bin/python3 && cp /etc/nsswitch.conf etc/
         echo root:x:0:0::/:/bin/false > etc/passwd
         cp \"$(command -v busybox)\" bin/ && ln bin/busybox bin/cat && cp {scripts}/*.py operator/
         tar -C / --exclude=test --exclude=__pycache__ --exclude=site-packages --exclude='config-*' -c \"${{stdlib#/}}\" | tar -x
         mkdir site && tar -C \"$site\" --exclude=__pycache__ --exclude='pip*' --exclude='*_wrapper*' -c . | tar -C site -x
         find . -name '*.so*' -o -name python3 | xargs ldd 2>/dev/null | grep -o '/[^ ]*' | grep -v ':$' |
             sort -u | xargs cp -L --parents -t .
         tar -c . | docker import -c 'ENV PYTHONPATH=/site' - {IMAGE}"
    );
    shell(folder.path(), &script);
}

fn it_operates(kubectl: &Kubectl, programs: &Programs) {
    define(kubectl, "cronbackup.yaml");
    let account = std::fs::read_to_string(beside("cronbackup_account.yaml"));
    let account = account.expect("it is beside this file");
    let without = account.replace(VERBS[0], VERBS[1]);
    assert_ne!(account, without);
    apply(kubectl, &without);
    apply(kubectl, &programs.pod());
    it_reaches_the_api_by_its_names(kubectl);
    it_has_a_hosts_file_of_its_own(kubectl);
    it_is_refused_what_its_role_lacks(kubectl);
    apply(kubectl, &account);
    it_does_what_its_role_allows(kubectl);
}

/// Waits until the log of a container has a text.
fn logs(kubectl: &Kubectl, container: &str, text: &str) -> String {
    eventually(&format!("{container} logs {text:?}"), || {
        let log = kubectl.run(&format!("logs operator -c {container}"));
        match log.stdout.contains(text) {
            true => Ok(log.stdout),
            false => Err(log.stdout + &log.stderr + &kubectl.run("get events").stdout),
        }
    })
}

fn it_reaches_the_api_by_its_names(kubectl: &Kubectl) {
    let last = format!("kubernetes.default.svc.cluster.local {USER}\n");
    let log = logs(kubectl, "reach", &last);
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines[0], "in default");
    let host = lines[1].strip_suffix(&format!(" {USER}"));
    let host: Option<std::net::Ipv4Addr> = host.and_then(|host| host.parse().ok());
    let host = host.unwrap_or_else(|| panic!("the host is no address: {log}"));
    assert_ne!(host.to_string(), "10.96.0.1");
    assert_eq!(lines[2], format!("kubernetes.default.svc {USER}"));
}

fn it_has_a_hosts_file_of_its_own(kubectl: &Kubectl) {
    let file = logs(kubectl, "hosts", "backups.example.com");
    assert!(
        file.starts_with("# Kubernetes-managed hosts file.\n"),
        "{file}"
    );
    assert!(file.contains("192.0.2.7\tbackups.example.com\n"), "{file}");
    let ip = kubectl.ok("get pod operator -o jsonpath={.status.podIP}");
    assert!(file.contains(&format!("{ip}\toperator\n")), "{file}");
    logs(kubectl, "operator", "Initial authentication has finished");
    let own = kubectl.ok("exec operator -c operator -- cat /proc/self/environ");
    assert!(
        own.contains("KUBERNETES_PORT=own"),
        "the user's value wins: {own}"
    );
}

fn it_is_refused_what_its_role_lacks(kubectl: &Kubectl) {
    apply(kubectl, BACKUP);
    let refused = format!(
        "cronjobs.batch is forbidden: User \\\"{USER}\\\" cannot create resource \\\"cronjobs\\\" in API group \\\"batch\\\" in the namespace \\\"default\\\""
    );
    let log = logs(kubectl, "operator", &refused);
    assert!(log.contains("(403)"), "{log}");
    assert_eq!(kubectl.ok("get cronjobs -o name"), "");
}

fn it_does_what_its_role_allows(kubectl: &Kubectl) {
    until(kubectl, JOB, ".spec.schedule", "0 2 * * *");
    let message = ".status.reconcile.message";
    until(kubectl, "cronbackup/nightly", message, "shop at 0 2 * * *");
    kubectl.ok("delete cronbackup nightly --timeout=60s");
    until_gone(kubectl, JOB);
}
