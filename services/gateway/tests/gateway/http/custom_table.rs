//! Tables of custom objects.

use serde_json::{Value, json};

use super::api::Api;
use super::custom::{CRONTABS, DEFINITIONS, definition};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

fn with_columns(columns: Value) -> Value {
    let mut definition = definition();
    let version = &mut definition["spec"]["versions"][0];
    version["additionalPrinterColumns"] = columns;
    version["schema"]["openAPIV3Schema"] =
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    version["selectableFields"] = json!([]);
    definition
}

fn columns(table: &Value, field: &str) -> Vec<Value> {
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    columns.map(|column| column[field].clone()).collect()
}

#[tokio::test]
async fn a_cell_is_selected_by_the_json_path_of_its_column() {
    let api = Api::start().await;
    let column = |path: &str| json!({ "name": "C", "type": "string", "jsonPath": path });
    let columns = [
        r#".status.conditions[?(@.type=="Ready")].status"#,
        ".status.conditions[-1].reason",
        r".metadata.labels['app\.kubernetes\.io/name']",
        ".spec.list",
        ".spec.list[*]",
        "..found",
        ".spec.missing",
    ];
    let columns: Value = columns.map(column).into_iter().collect();
    api.define(with_columns(columns)).await;
    let object = json!({
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": { "name": "a", "labels": { "app.kubernetes.io/name": "web" } },
        "spec": { "list": [3, 4], "deep": { "found": "here" } },
        "status": { "conditions": [
            { "type": "Synced", "status": "False", "reason": "A" },
            { "type": "Ready", "status": "True", "reason": "B" },
        ] },
    });
    let created = api.post(CRONTABS, object.clone()).await.ok();
    let mut status = object;
    status["metadata"] = created["metadata"].clone();
    api.put(&format!("{CRONTABS}/a/status"), status).await.ok();
    let table = api.get_as(CRONTABS, TABLE).await.ok();
    assert_eq!(
        table["rows"][0]["cells"],
        json!(["a", "True", "B", "web", "[3,4]", "3", "here", null])
    );
}

#[tokio::test]
async fn columns_are_described() {
    let api = Api::start().await;
    let columns_declared = json!([
        { "name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec" },
        { "name": "Own", "type": "integer", "jsonPath": ".spec.own", "description": "Mine.", "priority": 1 },
    ]);
    api.define(with_columns(columns_declared)).await;
    let table = api.get_as(CRONTABS, TABLE).await.ok();
    let texts = columns(&table, "description");
    assert!(texts[0].as_str().unwrap().starts_with("Name "), "{texts:?}");
    assert_eq!(
        texts[1],
        "Custom resource definition column (in JSONPath format): .spec.cronSpec"
    );
    assert_eq!(texts[2], "Mine.");
    assert_eq!(columns(&table, "priority"), [json!(0), json!(0), json!(1)]);
}

#[tokio::test]
async fn without_columns_a_table_has_the_age() {
    let api = Api::start().await;
    api.define(with_columns(json!([]))).await;
    let table = api.get_as(CRONTABS, TABLE).await.ok();
    assert_eq!(columns(&table, "name"), ["Name", "Age"]);
    let texts = columns(&table, "description");
    let text = texts[1].as_str().unwrap();
    assert!(text.starts_with("CreationTimestamp "), "{text}");
    let definitions = api.get_as(DEFINITIONS, TABLE).await.ok();
    assert_eq!(columns(&definitions, "description")[0], texts[0]);
}
