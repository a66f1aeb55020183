//! The commands of kubectl on a kind that a CustomResourceDefinition declares.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

use setpoint_tests::{Cluster, Kubectl, Process, eventually};

use super::{folded, succeed};

const DEFINITION: &str = include_str!("crontab.yaml");
const ONE: &str = "apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: one, labels: {app: web}}
spec: {cronSpec: '0 4', image: nginx, replicas: 1}
";
const ESTABLISHED: &str =
    "wait crd/crontabs.stable.example.com --for=condition=Established --timeout=30s";

fn answer(kubectl: &Kubectl, arguments: &str, manifest: &str) -> String {
    let output = kubectl.with(arguments, manifest);
    assert!(output.success, "{arguments}: {}", output.stderr);
    output.stdout
}

fn define(kubectl: &Kubectl) {
    let defined = answer(kubectl, "apply", DEFINITION);
    let name = "customresourcedefinition.apiextensions.k8s.io/crontabs.stable.example.com";
    assert_eq!(defined, format!("{name} created\n"));
    kubectl.ok(ESTABLISHED);
}

fn field(kubectl: &Kubectl, path: &str) -> String {
    kubectl.ok(&format!("get crontab one -o jsonpath={{{path}}}"))
}

#[test]
fn kubectl_discovers_a_custom_kind() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    assert!(
        kubectl
            .fails("get crontab")
            .contains("doesn't have a resource type")
    );
    define(&kubectl);
    let table = folded(&kubectl.ok("api-resources --api-group=stable.example.com"));
    let heads = "NAME SHORTNAMES APIVERSION NAMESPACED KIND";
    assert_eq!(
        table,
        [heads, "crontabs ct stable.example.com/v1 true CronTab"]
    );
    let verbs = "--verbs=create,delete,deletecollection,get,list,patch,update,watch";
    let categories = format!("api-resources --categories=all {verbs} -o name");
    assert!(
        kubectl
            .ok(&categories)
            .contains("crontabs.stable.example.com\n")
    );
    assert!(
        kubectl
            .ok("api-versions")
            .contains("stable.example.com/v1\n")
    );
    assert_eq!(kubectl.ok("auth can-i create crontabs"), "yes\n");
}

#[test]
fn kubectl_explains_a_custom_kind() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    define(&kubectl);
    let text = kubectl.ok("explain crontab");
    for part in ["KIND:       CronTab", "CronTab runs an image periodically."] {
        assert!(text.contains(part), "{text}");
    }
    let text = kubectl.ok("explain ct.spec.cronSpec");
    for part in ["FIELD: cronSpec <string>", "The minute and hour"] {
        assert!(text.contains(part), "{text}");
    }
    let text = kubectl.ok("explain crontabs --recursive");
    assert!(text.contains("replicas\t<integer>"), "{text}");
    for version in other_versions() {
        let kubectl = cluster.kubectl().with_program(version);
        assert!(kubectl.ok("explain crontab.spec").contains("cronSpec"));
    }
}

#[test]
fn kubectl_reads_and_watches_custom_objects() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    define(&kubectl);
    let created = answer(&kubectl, "apply", ONE);
    assert_eq!(created, "crontab.stable.example.com/one created\n");
    answer(
        &kubectl,
        "create",
        &ONE.replace("one", "two").replace("nginx", "redis"),
    );
    let shown = |arguments: &str| folded(&kubectl.ok(&format!("get {arguments}")));
    let table = shown("crontab");
    assert_eq!(table[0], "NAME SPEC REPLICAS AGE");
    assert!(table[1].starts_with("one 0 4 1 "), "{table:?}");
    assert_eq!(shown("ct -o wide")[0], "NAME SPEC REPLICAS IMAGE AGE");
    assert!(
        shown("all")
            .iter()
            .any(|line| line.starts_with("crontab.stable.example.com/one "))
    );
    let names = [
        "crontab.stable.example.com/one",
        "crontab.stable.example.com/two",
    ];
    assert_eq!(shown("crontabs.v1.stable.example.com -o name"), names);
    assert_eq!(
        shown("ct -l app=web --field-selector spec.image=redis -o name"),
        names[1..]
    );
    assert_eq!(
        shown("ct --chunk-size=1 --no-headers --sort-by=.spec.image -o name"),
        names
    );
    assert_eq!(shown("ct one -o go-template={{.spec.image}}"), ["nginx"]);
    let described = kubectl.ok("describe crontab one");
    assert!(described.contains("Cron Spec:  0 4"), "{described}");
    a_watch_shows_changes(&cluster, &kubectl);
}

fn a_watch_shows_changes(cluster: &Cluster, kubectl: &Kubectl) {
    let path = cluster.directory().join("watched");
    let mut command = kubectl.command("get crontab one -w --output-watch-events --no-headers");
    command.stdout(File::create(&path).expect("it is writable"));
    let _watch = Process::start(command);
    let until = |start: &str| {
        eventually(start, || {
            let lines = folded(&std::fs::read_to_string(&path).unwrap_or_default());
            let seen = lines.iter().any(|line| line.starts_with(start));
            seen.then_some(()).ok_or(lines.join("\n"))
        });
    };
    until("ADDED one 0 4 1 ");
    kubectl.ok("scale crontab/one --replicas=2");
    until("MODIFIED one 0 4 2 ");
    kubectl.ok("delete crontab one");
    until("DELETED one 0 4 2 ");
}

#[test]
fn kubectl_writes_custom_objects() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    define(&kubectl);
    it_applies_and_compares(&kubectl);
    it_applies_on_the_server(&kubectl);
    it_changes_objects_in_place(&kubectl, &cluster);
    it_scales_and_waits(&kubectl);
    it_reports_violations_of_the_schema(&kubectl);
    it_replaces_and_deletes(&kubectl);
}

fn it_applies_and_compares(kubectl: &Kubectl) {
    let one = "crontab.stable.example.com/one";
    assert_eq!(answer(kubectl, "apply", ONE), format!("{one} created\n"));
    assert_eq!(answer(kubectl, "apply", ONE), format!("{one} unchanged\n"));
    let changed = ONE.replace("0 4", "0 5");
    for flags in ["", "--server-side --force-conflicts"] {
        let difference = kubectl.with(&format!("diff {flags}"), &changed);
        assert!(!difference.success);
        let lines = "-  cronSpec: 0 4\n+  cronSpec: 0 5\n";
        assert!(difference.stdout.contains(lines), "{difference:?}");
    }
    let dry = answer(kubectl, "apply --dry-run=server", &changed);
    assert_eq!(dry, format!("{one} configured (server dry run)\n"));
    assert_eq!(
        answer(kubectl, "apply", &changed),
        format!("{one} configured\n")
    );
    assert_eq!(field(kubectl, ".spec.cronSpec"), "0 5");
    let without = changed.replace("image: nginx, ", "");
    answer(kubectl, "apply", &without);
    assert_eq!(
        field(kubectl, ".spec.image"),
        "busybox",
        "the default applies again"
    );
    assert!(kubectl.with("diff", &without).success);
}

fn it_applies_on_the_server(kubectl: &Kubectl) {
    let two = ONE.replace("one", "two");
    let apply = |flags: &str, manifest: &str| {
        kubectl.with(&format!("apply --server-side {flags}"), manifest)
    };
    let applied = apply("--field-manager=first", &two);
    let expected = "crontab.stable.example.com/two serverside-applied\n";
    assert_eq!(applied.stdout, expected, "{}", applied.stderr);
    let version = || kubectl.ok("get crontab two -o jsonpath={.metadata.resourceVersion}");
    let before = version();
    assert!(apply("--field-manager=first", &two).success);
    assert_eq!(version(), before, "applying the same again writes nothing");
    let changed = two.replace("0 4", "0 5");
    let conflict = apply("--field-manager=second", &changed);
    let expected = r#"Apply failed with 1 conflict: conflict with "first": .spec.cronSpec"#;
    assert!(conflict.stderr.contains(expected), "{conflict:?}");
    assert!(apply("--field-manager=second --force-conflicts", &changed).success);
    // It takes over the fields that were applied by the client.
    let migrated = apply("", &ONE.replace("image: nginx, ", ""));
    assert!(migrated.success, "{}", migrated.stderr);
    assert_eq!(field(kubectl, ".spec.cronSpec"), "0 4");
    kubectl.ok("delete crontab two");
}

fn it_changes_objects_in_place(kubectl: &Kubectl, cluster: &Cluster) {
    kubectl.ok("label crontab one tier=front");
    kubectl.ok("annotate crontab one note=hello");
    kubectl.ok(r#"patch crontab one --type=merge -p {"spec":{"image":"redis"}}"#);
    kubectl.ok(r#"patch ct one --type=json -p [{"op":"test","path":"/spec/image","value":"redis"},{"op":"replace","path":"/spec/image","value":"nginx"}]"#);
    assert_eq!(field(kubectl, ".spec.image"), "nginx");
    let refused = kubectl.fails(r#"patch crontab one -p {"spec":{"image":"redis"}}"#);
    assert!(
        refused.contains("the body of the request was in an unknown format"),
        "{refused}"
    );
    let mut edit = kubectl.command("edit crontab one");
    edit.env("KUBE_EDITOR", "sed -i s/hello/bye/");
    let edited = succeed(&mut edit, cluster.directory());
    assert_eq!(edited, "crontab.stable.example.com/one edited\n");
    assert_eq!(field(kubectl, ".metadata.annotations.note"), "bye");
}

fn it_scales_and_waits(kubectl: &Kubectl) {
    let scaled = kubectl.ok("scale crontab/one --replicas=3 --current-replicas=1");
    assert_eq!(scaled, "crontab.stable.example.com/one scaled\n");
    assert_eq!(field(kubectl, ".spec.replicas"), "3");
    let waiting = |condition: &str| {
        let mut command =
            kubectl.command(&format!("wait crontab/one --timeout=60s --for={condition}"));
        command.stdout(Stdio::null());
        command.spawn().expect("kubectl is installed")
    };
    let waits = [
        waiting("condition=Ready"),
        waiting("condition=Stalled=False"),
        waiting("jsonpath={.status.replicas}=3"),
    ];
    let status = r#"{"status":{"replicas":3,"conditions":[{"type":"Ready","status":"True"},{"type":"Stalled","status":"False"}]}}"#;
    kubectl.ok(&format!(
        "patch crontab one --subresource=status --type=merge -p {status}"
    ));
    for mut wait in waits {
        assert!(wait.wait().expect("it was started").success());
    }
    let generation = field(kubectl, ".metadata.generation");
    kubectl.ok(r#"patch crontab one --type=merge -p {"status":{"replicas":9}}"#);
    assert_eq!(field(kubectl, ".status.replicas"), "3");
    assert_eq!(field(kubectl, ".metadata.generation"), generation);
}

fn it_reports_violations_of_the_schema(kubectl: &Kubectl) {
    let refused = |from: &str, to: &str, message: &str| {
        let output = kubectl.with("apply", &ONE.replace(from, to));
        assert!(
            !output.success && output.stderr.contains(message),
            "{output:?}"
        );
    };
    refused(
        "0 4",
        "never",
        r#"spec.cronSpec: Invalid value: "never": spec.cronSpec in body should match '^\S+ \S+$'"#,
    );
    refused("cronSpec: '0 4', ", "", "spec.cronSpec: Required value");
    refused(
        "image: nginx",
        "color: red",
        r#"unknown field "spec.color""#,
    );
    refused(
        "replicas: 1",
        "replicas: x",
        r#"must be of type integer: "string""#,
    );
}

fn it_replaces_and_deletes(kubectl: &Kubectl) {
    let replaced = answer(kubectl, "replace", ONE);
    assert_eq!(replaced, "crontab.stable.example.com/one replaced\n");
    let before = field(kubectl, ".metadata.uid");
    answer(kubectl, "replace --force", ONE);
    assert_ne!(field(kubectl, ".metadata.uid"), before);
    let deleted = kubectl.ok("delete crontab one --wait");
    // Since 1.34, the namespace follows.
    let expected = "crontab.stable.example.com \"one\" deleted";
    assert!(deleted.starts_with(expected), "{deleted}");
    assert!(kubectl.fails("get crontab one").contains("NotFound"));
    answer(kubectl, "create", ONE);
    kubectl.ok("delete ct --all");
    assert_eq!(kubectl.ok("get ct -o name"), "");
}

#[test]
fn deleting_a_definition_deletes_its_objects_and_waits_for_their_finalizers() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    define(&kubectl);
    answer(&kubectl, "apply", ONE);
    answer(&kubectl, "apply", &ONE.replace("one", "two"));
    kubectl.ok(r#"patch ct one --type=merge -p {"metadata":{"finalizers":["example.com/hold"]}}"#);
    kubectl.ok("delete crd crontabs.stable.example.com --wait=false");
    kubectl.ok("wait crd/crontabs.stable.example.com --for=condition=Terminating --timeout=30s");
    kubectl.ok("wait crontab/two --for=delete --timeout=30s");
    kubectl.ok("wait crontab/one --for=jsonpath={.metadata.deletionTimestamp} --timeout=30s");
    let refused = kubectl.with("create", &ONE.replace("one", "three"));
    assert!(
        refused
            .stderr
            .contains("create not allowed while custom resource definition is terminating"),
        "{refused:?}"
    );
    kubectl.ok(r#"patch ct one --type=json -p [{"op":"remove","path":"/metadata/finalizers"}]"#);
    kubectl.ok("wait crd/crontabs.stable.example.com --for=delete --timeout=30s");
    // Lists the kinds anew, without which kubectl believes its cache.
    let kinds = kubectl.ok("api-resources -o name");
    assert!(!kinds.contains("crontabs"), "{kinds}");
    let unknown = kubectl.fails("get crontab");
    assert!(
        unknown.contains("doesn't have a resource type"),
        "{unknown}"
    );
    define(&kubectl);
    assert_eq!(kubectl.ok("get crontab -o name"), "");
}

/// Other versions of kubectl beside the one in `PATH`, such as `kubectl.1.28`.
fn other_versions() -> BTreeSet<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .filter_map(|folder| folder.join("kubectl").canonicalize().ok());
    let siblings = found.filter_map(|program| std::fs::read_dir(program.parent()?).ok());
    let names = siblings.flatten().flatten().map(|entry| entry.path());
    let versioned = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("kubectl.1") || name.starts_with("kubectl-1")
    };
    names.filter(versioned).collect()
}

#[test]
fn other_versions_of_kubectl_know_a_custom_kind() {
    let cluster = Cluster::bare();
    let versions = other_versions();
    if versions.is_empty() {
        println!("SKIPPED: there is one version of kubectl");
    }
    define(&cluster.kubectl());
    for version in versions {
        println!("{}", version.display());
        let kubectl = cluster.kubectl().with_program(version);
        answer(&kubectl, "apply", ONE);
        assert_eq!(folded(&kubectl.ok("get ct"))[0], "NAME SPEC REPLICAS AGE");
        answer(&kubectl, "apply --server-side --force-conflicts", ONE);
        assert!(!kubectl.with("diff", &ONE.replace("0 4", "0 5")).success);
        kubectl.ok("scale crontab/one --replicas=2");
        kubectl.ok("wait crontab/one --for=jsonpath={.spec.replicas}=2 --timeout=30s");
        kubectl.ok("delete crontab one");
    }
}
