//! Plans as text, for readers: each with its reasons, until nothing is left to do.

use expect_test::expect;
use setpoint_daemonset_controller::plan;
use setpoint_proto::core::Pod;

use crate::decisions::cluster::Cluster;

/// Runs controller and nodes in turn. Returns the plans.
fn settled(cluster: &mut Cluster) -> String {
    let mut text = String::new();
    for _ in 0..40 {
        let plan = plan(&cluster.world());
        text += &plan.to_string();
        let is_idle = cluster.reconcile() && plan.again.is_none();
        if is_idle && cluster.objects.pods.values().all(is_settled) {
            return text;
        }
        cluster.now += plan.again.map_or(1, |again| again.as_secs() as i64);
        cluster.run_all();
    }
    panic!("no end:\n{text}");
}

fn is_settled(pod: &Pod) -> bool {
    setpoint_model::pod::is_ready(pod) && pod.metadata.deletion_timestamp.is_none()
}

#[test]
fn pods_come_and_go_with_the_nodes_that_fit() {
    let mut cluster = Cluster::new(&["a", "b"]);
    expect![[r#"
        Revision(Create { name: "log-55b8bdc766", number: 1 }) because no revision has this template
        Create { name: "log-cwvtm", node: "a", hash: "55b8bdc766" } because the node should run a Pod and has none
        Create { name: "log-c5v9s", node: "b", hash: "55b8bdc766" } because the node should run a Pod and has none
    "#]].assert_eq(&settled(&mut cluster));
    cluster.add_node("c");
    cluster.taint("b", "NoExecute");
    cluster.objects.nodes.remove("a");
    expect![[r#"
        Delete { pod: production/log-cwvtm, node: "a", found: Lost } because its node does not exist
        Delete { pod: production/log-c5v9s, node: "b", found: Alive } because the node must not run the Pod
        Create { name: "log-kdxhb", node: "c", hash: "55b8bdc766" } because the node should run a Pod and has none
    "#]].assert_eq(&settled(&mut cluster));
}

#[test]
fn an_update_replaces_one_pod_at_a_time_or_adds_the_new_one_first() {
    let mut cluster = Cluster::new(&["a", "b"]);
    cluster.set_image("one");
    cluster.settle();
    cluster.set_image("two");
    expect![[r#"
        Revision(Create { name: "log-7dbff77cb7", number: 2 }) because no revision has this template
        Delete { pod: production/log-cwvtm, node: "a", found: Alive } because it has an old template, and maxUnavailable allows its deletion
        Create { name: "log-9m5hl", node: "a", hash: "7dbff77cb7" } because the node should run a Pod and has none
        Delete { pod: production/log-c5v9s, node: "b", found: Alive } because it has an old template, and maxUnavailable allows its deletion
        Create { name: "log-jzxs8", node: "b", hash: "7dbff77cb7" } because the node should run a Pod and has none
    "#]].assert_eq(&settled(&mut cluster));
    cluster.roll(1, 0);
    cluster.set_image("three");
    expect![[r#"
        Revision(Create { name: "log-dbdb44769", number: 3 }) because no revision has this template
        Create { name: "log-k5tgf", node: "a", hash: "dbdb44769" } because the Pod has an old template, and maxSurge allows another
        Delete { pod: production/log-9m5hl, node: "a", found: Alive } because the Pod of the current template is available
        Create { name: "log-864cr", node: "b", hash: "dbdb44769" } because the Pod has an old template, and maxSurge allows another
        Delete { pod: production/log-jzxs8, node: "b", found: Alive } because the Pod of the current template is available
    "#]].assert_eq(&settled(&mut cluster));
}

#[test]
fn a_pod_that_fails_again_is_replaced_after_a_wait() {
    let mut cluster = Cluster::new(&["a"]);
    cluster.settle();
    let fail = |cluster: &mut Cluster| {
        let name = cluster.on("a")[0].to_owned();
        cluster.fail(&name, "Failed");
        plan(&cluster.world()).to_string()
    };
    expect![[r#"
        Delete { pod: production/log-cwvtm, node: "a", found: Failed } because it has failed
    "#]]
    .assert_eq(&fail(&mut cluster));
    cluster.reconcile();
    cluster.run_all();
    expect![[r#"
        Create { name: "log-6f29x", node: "a", hash: "55b8bdc766" } because the node should run a Pod and has none
    "#]].assert_eq(&plan(&cluster.world()).to_string());
    cluster.reconcile();
    expect![[r#"
        look again after 1s
    "#]]
    .assert_eq(&fail(&mut cluster));
    cluster.now += 1;
    expect![[r#"
        Delete { pod: production/log-6f29x, node: "a", found: Failed } because it has failed
    "#]]
    .assert_eq(&plan(&cluster.world()).to_string());
}
