//! The commands of kubectl that write objects.

use std::process::Command;

use setpoint_tests::{Cluster, Kubectl, eventually};

use super::succeed;

/// A command of each generator of `kubectl create`, and the object that it creates.
const GENERATORS: &[(&str, &str)] = &[
    ("namespace n", "namespace/n"),
    ("configmap c --from-literal=a=b", "configmap/c"),
    ("secret generic s --from-literal=a=b", "secret/s"),
    (
        "secret docker-registry d --docker-username=u --docker-password=p --docker-server=r",
        "secret/d",
    ),
    ("serviceaccount a", "serviceaccount/a"),
    (
        "deployment d --image=nginx:1.25 --replicas=2",
        "deployment.apps/d",
    ),
    ("job j --image=busybox -- true", "job.batch/j"),
    (
        "cronjob k --image=busybox --schedule=*/5_*_*_*_* -- true",
        "cronjob.batch/k",
    ),
    ("service clusterip i --tcp=80:8080", "service/i"),
    ("service nodeport o --tcp=80:8080", "service/o"),
    ("service loadbalancer l --tcp=80:8080", "service/l"),
    (
        "service externalname e --external-name=example.com",
        "service/e",
    ),
    (
        "ingress i --rule=example.com/*=i:80",
        "ingress.networking.k8s.io/i",
    ),
    (
        "role r --verb=get --resource=pods",
        "role.rbac.authorization.k8s.io/r",
    ),
    (
        "rolebinding b --role=r --user=u",
        "rolebinding.rbac.authorization.k8s.io/b",
    ),
    (
        "clusterrole r --verb=get --resource=pods",
        "clusterrole.rbac.authorization.k8s.io/r",
    ),
    (
        "clusterrolebinding b --clusterrole=r --group=g",
        "clusterrolebinding.rbac.authorization.k8s.io/b",
    ),
    (
        "priorityclass p --value=10",
        "priorityclass.scheduling.k8s.io/p",
    ),
    (
        "poddisruptionbudget p --selector=app=web --min-available=1",
        "poddisruptionbudget.policy/p",
    ),
    ("quota q --hard=pods=10,requests.cpu=4", "resourcequota/q"),
];

#[test]
fn kubectl_create_has_all_its_generators() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    for (command, created) in GENERATORS {
        let words = command.split(' ').map(|word| word.replace('_', " "));
        let mut create = kubectl.command("create");
        let answer = succeed(create.args(words), cluster.directory());
        assert_eq!(answer, format!("{created} created\n"));
        kubectl.ok(&format!("describe {created}"));
        assert!(
            kubectl
                .ok(&format!("get {created} -o yaml"))
                .contains("creationTimestamp")
        );
    }
    let again = kubectl.fails("create configmap c --from-literal=a=b");
    assert!(
        again.contains(r#"configmaps "c" already exists"#),
        "{again}"
    );
}

const CONFIG: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {app: web}}\ndata: {a: b}\n";
const LIST: &str = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: two, labels: {app: web}}, data: {a: b}}\n- {apiVersion: v1, kind: Secret, metadata: {name: two, labels: {app: web}}}\n";

#[test]
fn kubectl_applies_compares_and_prunes() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let answer = |arguments: &str, manifest: &str| {
        let output = kubectl.with(arguments, manifest);
        assert!(output.success, "{arguments}: {}", output.stderr);
        output.stdout
    };
    assert_eq!(answer("apply", CONFIG), "configmap/one created\n");
    assert_eq!(answer("apply", CONFIG), "configmap/one unchanged\n");
    assert_eq!(
        answer("apply", LIST),
        "configmap/two created\nsecret/two created\n"
    );
    let changed = CONFIG.replace("a: b", "a: c");
    let difference = kubectl.with("diff", &changed);
    assert!(
        difference.stdout.contains("-  a: b\n+  a: c\n"),
        "{}",
        difference.stdout
    );
    let difference = kubectl.with("diff --server-side --force-conflicts", &changed);
    assert!(
        difference.stdout.contains("-  a: b\n+  a: c\n"),
        "{}{}",
        difference.stdout,
        difference.stderr
    );
    assert_eq!(
        answer("apply --dry-run=server", &changed),
        "configmap/one configured (server dry run)\n"
    );
    assert_eq!(answer("apply", &changed), "configmap/one configured\n");
    let pruned = answer(
        "apply --prune -l app=web --prune-allowlist=core/v1/ConfigMap",
        CONFIG,
    );
    assert_eq!(pruned, "configmap/one configured\nconfigmap/two pruned\n");
    kubectl.ok("get secret two");
}

#[test]
fn kubectl_applies_on_the_server_with_managers_of_fields() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let apply = |flags: &str, manifest: &str| {
        kubectl.with(&format!("apply --server-side {flags}"), manifest)
    };
    let output = apply("--field-manager=first", CONFIG);
    assert_eq!(
        output.stdout, "configmap/one serverside-applied\n",
        "{}",
        output.stderr
    );
    let version = || kubectl.ok("get configmap one -o jsonpath={.metadata.resourceVersion}");
    let before = version();
    assert!(apply("--field-manager=first", CONFIG).success);
    assert_eq!(version(), before, "applying the same again writes nothing");
    let changed = CONFIG.replace("a: b", "a: c");
    let conflict = apply("--field-manager=second", &changed);
    assert!(!conflict.success);
    assert!(
        conflict
            .stderr
            .contains(r#"Apply failed with 1 conflict: conflict with "first": .data.a"#),
        "{}",
        conflict.stderr
    );
    assert!(apply("--field-manager=second --force-conflicts", &changed).success);
    assert!(
        apply(
            "--field-manager=first",
            &CONFIG.replace("data: {a: b}", "data: {}")
        )
        .success
    );
    assert_eq!(
        kubectl.ok("get configmap one -o jsonpath={.data}"),
        r#"{"a":"c"}"#
    );
    let without = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n";
    assert!(apply("--field-manager=second", without).success);
    assert_eq!(
        kubectl.ok("get configmap one -o jsonpath={.data}"),
        "",
        "no one owns the field any more"
    );
}

#[test]
fn kubectl_changes_objects_in_place() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    assert!(kubectl.with("apply", CONFIG).success);
    kubectl.ok("label configmap one tier=back");
    kubectl.ok("label configmap one tier=front --overwrite");
    assert!(
        kubectl
            .fails("label configmap one tier=back")
            .contains("already has a value")
    );
    kubectl.ok("annotate configmap one note=hello");
    kubectl.ok("label configmap one tier-");
    kubectl.ok(r#"patch configmap one --type=merge -p {"data":{"b":"c"}}"#);
    kubectl.ok(r#"patch configmap one --type=json -p [{"op":"test","path":"/data/b","value":"c"},{"op":"replace","path":"/data/b","value":"d"}]"#);
    let refused = kubectl.fails(
        r#"patch configmap one --type=json -p [{"op":"test","path":"/data/b","value":"x"}]"#,
    );
    assert!(refused.contains("The request is invalid"), "{refused}");
    kubectl.ok(r#"patch configmap one -p {"data":{"c":"e"}}"#);
    let data = kubectl.ok("get configmap one -o jsonpath={.data}");
    assert_eq!(data, r#"{"a":"b","b":"d","c":"e"}"#);
    edited(&kubectl, &cluster);
    let replaced = kubectl.with("replace", CONFIG);
    assert_eq!(
        replaced.stdout, "configmap/one replaced\n",
        "{}",
        replaced.stderr
    );
    let uid = || kubectl.ok("get configmap one -o jsonpath={.metadata.uid}");
    let before = uid();
    let replaced = kubectl.with("replace --force", CONFIG);
    assert!(replaced.success, "{}", replaced.stderr);
    assert_ne!(uid(), before);
    kubectl.ok("delete configmap one --wait");
    assert!(kubectl.fails("get configmap one").contains("NotFound"));
}

fn edited(kubectl: &Kubectl, cluster: &Cluster) {
    let mut edit = kubectl.command("edit configmap one");
    edit.env("KUBE_EDITOR", "sed -i s/hello/bye/");
    assert_eq!(
        succeed(&mut edit, cluster.directory()),
        "configmap/one edited\n"
    );
    let note = kubectl.ok("get configmap one -o jsonpath={.metadata.annotations.note}");
    assert_eq!(note, "bye");
}

#[test]
fn kubectl_builds_and_applies_a_kustomization() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("it is writable")
    };
    write("config.yaml", CONFIG);
    write(
        "kustomization.yaml",
        "namePrefix: my-\nresources: [config.yaml]\nlabels: [{pairs: {team: a}}]\n",
    );
    let path = folder.path().display();
    assert_eq!(
        kubectl.ok(&format!("apply -k {path}")),
        "configmap/my-one created\n"
    );
    assert_eq!(
        kubectl.ok("get configmap -l team=a -o name"),
        "configmap/my-one\n"
    );
    kubectl.ok(&format!("delete -k {path}"));
}

#[test]
fn kubectl_approves_a_certificate_signing_request() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let mut openssl = Command::new("openssl");
    openssl.args([
        "req",
        "-new",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=jane",
        "-keyout",
        "/dev/null",
    ]);
    let request = succeed(&mut openssl, cluster.directory());
    let mut base64 = Command::new("sh");
    base64
        .args(["-c", "printf %s \"$REQUEST\" | base64 -w0"])
        .env("REQUEST", request);
    let request = succeed(&mut base64, cluster.directory());
    let manifest = format!(
        "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {{name: jane}}\nspec: {{request: {request}, signerName: example.com/a, usages: [client auth]}}\n"
    );
    let created = kubectl.with("create", &manifest);
    assert!(created.success, "{}", created.stderr);
    assert!(kubectl.ok("get csr jane").contains("Pending"));
    kubectl.ok("certificate approve jane");
    eventually("the request is approved", || {
        let table = kubectl.ok("get csr jane");
        table.contains("Approved").then_some(()).ok_or(table)
    });
}
