//! The example controller, run against a cluster.

use setpoint_tests::{Cluster, Kubectl, eventually, fast_election};

/// The mirror is created, updated, restored after an edit, and deleted.
#[test]
fn the_example_controller_keeps_a_mirror_of_each_config_map() {
    let mut cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    kubectl.ok(
        "create clusterrole mirror --verb=get,list,watch,create,update,patch,delete \
         --resource=configmaps,secrets,events,leases.coordination.k8s.io",
    );
    kubectl
        .ok("create clusterrolebinding mirror --clusterrole=mirror --user=system:setpoint:mirror");
    cluster.service("examples/mirror", 0, &fast_election());
    kubectl.ok("create configmap greeting --from-literal=text=hello");
    kubectl.ok("annotate configmap greeting example.com/mirror=true");
    until_mirrored(&kubectl, "hello");
    kubectl.ok("patch configmap greeting -p {\"data\":{\"text\":\"bye\"}}");
    until_mirrored(&kubectl, "bye");
    kubectl.ok("delete secret greeting");
    until_mirrored(&kubectl, "bye");
    kubectl.ok("annotate configmap greeting example.com/mirror-");
    eventually("the mirror is deleted", || {
        let found = kubectl.run("get secret greeting");
        (!found.success).then_some(()).ok_or(found.stdout)
    });
}

fn until_mirrored(kubectl: &Kubectl, text: &str) {
    eventually("the mirror has the text", || {
        let template = "go-template={{.data.text|base64decode}}";
        let found = kubectl.run(&format!("get secret greeting -o {template}"));
        (found.stdout == text)
            .then_some(())
            .ok_or(found.stdout + &found.stderr)
    });
}
