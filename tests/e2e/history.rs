//! `setpoint history` lists the writes of an object that etcd still has.

use serde_json::Value;
use setpoint_tests::{Cluster, eventually};

use crate::web::text;

const HISTORY: &str = "history cm/settings --diff";

fn versions(history: &Value) -> &[Value] {
    history["versions"].as_array().map_or(&[], Vec::as_slice)
}

fn compact(cluster: &Cluster, revision: i64) {
    let etcd = cluster.etcd_url();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = etcd.etcd().await;
        let mut client = client.expect("etcd is up").kv_client();
        client
            .compact(revision, None)
            .await
            .expect("the compaction succeeds");
    });
}

#[test]
fn history_lists_every_write_with_its_writer_and_fields_until_compaction() {
    let cluster = Cluster::bare_with(2);
    let kubectl = cluster.kubectl();
    kubectl.ok("create configmap settings --from-literal=size=1 --field-manager=alice");
    let patch = |manager: &str, data: &str| {
        kubectl.ok(&format!(
            "patch configmap settings --field-manager={manager} -p {data}"
        ));
    };
    patch("bob", r#"{"data":{"size":"2"}}"#);
    patch("alice", r#"{"data":{"size":null,"colour":"red"}}"#);

    let history = cluster
        .setpoint_json(1, HISTORY)
        .expect("the object exists");
    let shown = versions(&history).iter().map(|version| {
        let changes = version["changes"].as_array().cloned().unwrap_or_default();
        let changes = changes.iter().map(|change| {
            let parts = ["/path", "/before", "/after"];
            parts.map(|part| text(change, part).to_owned()).join(" ")
        });
        let (what, writer) = (text(version, "/what"), text(version, "/cause/writer"));
        format!(
            "{writer} {what}: {}",
            changes.collect::<Vec<_>>().join(", ")
        )
    });
    let expected = [
        r#"alice changed: data[colour]  "red", data[size] "2" "#,
        r#"bob changed: data[size] "1" "2""#,
        "alice created: ",
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    assert_eq!(history["ends"], "created");
    let written = versions(&history)[0]["cause"]["writtenNs"].as_i64();
    assert!(written.is_some_and(|written| written > 0), "{history}");
    let page = cluster.setpoint_at(0, HISTORY).stdout;
    assert!(page.contains(r#"    data[size]: "1" → "2""#), "{page}");

    kubectl.ok("delete configmap settings");
    let gone = eventually("the deletion is listed", || {
        let history = cluster.setpoint_json(1, HISTORY)?;
        let deleted = versions(&history)[0]["what"] == "deleted";
        deleted
            .then_some(history.clone())
            .ok_or(history.to_string())
    });
    assert_eq!(versions(&gone).len(), 4, "{gone}");

    let bob = text(&versions(&gone)[2], "/revision")
        .parse()
        .expect("a number");
    compact(&cluster, bob);
    let left = cluster
        .setpoint_json(0, HISTORY)
        .expect("the object is found");
    let what: Vec<_> = versions(&left)
        .iter()
        .map(|version| text(version, "/what"))
        .collect();
    assert_eq!(what, ["deleted", "changed", "found"]);
    assert_eq!(left["ends"], "compacted");
    let unknown = cluster.setpoint_at(0, "history cm/none");
    assert!(
        !unknown.success
            && unknown
                .stdout
                .contains("No writes of such an object are known"),
        "{unknown:?}"
    );
}
