//! The notation of paths and sets, and the list of managers.

use super::*;

#[test]
fn elements_of_paths_round_trip() {
    for text in [
        "i:0",
        "i:1234",
        "f:",
        "f:spec",
        "f:more-complicated-string",
        r#"k:{"name":"my-container"}"#,
        r#"k:{"port":"8080","protocol":"TCP"}"#,
        r#"k:{"optionalField":null}"#,
        r#"k:{"jsonField":{"A":1,"B":null,"C":"D","E":{"F":"G"}}}"#,
        r#"k:{"listField":["1","2","3"]}"#,
        "v:null",
        r#"v:"some-string""#,
        "v:1234",
        r#"v:{"some":"json"}"#,
    ] {
        let element = PathElement::parse(text).unwrap().unwrap();
        let mut written = String::new();
        element.write(&mut written);
        assert_eq!(written, text);
    }
}

#[test]
fn malformed_elements_are_refused_and_unknown_ones_ignored() {
    for text in [
        "",
        "no-colon",
        "i:index is not a number",
        "i:1.23",
        "i:",
        "v:invalid json",
        "v:",
        "k:invalid json",
        r#"k:{"name":invalid}"#,
        "é",
    ] {
        assert!(PathElement::parse(text).is_err(), "{text}");
    }
    assert_eq!(PathElement::parse("r:Hello"), Ok(None));
}

#[test]
fn sets_round_trip_in_the_order_of_kubernetes() {
    for json in [
        "{}",
        r#"{"f:metadata":{".":{},"f:name":{}}}"#,
        r#"{"f:a":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:x":{}},"v:1":{},"v:\"a\"":{},"i:0":{}}"#,
    ] {
        let set = FieldSet::from_json(json.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(set.to_json()).unwrap(), json);
    }
    let shuffled = r#"{"v:2":{},"i:1":{},"f:b":{"f:z":{},"f:y":{}},"f:a":{},"v:1":{}}"#;
    let sorted = r#"{"f:a":{},"f:b":{"f:y":{},"f:z":{}},"v:1":{},"v:2":{},"i:1":{}}"#;
    let set = FieldSet::from_json(shuffled.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(set.to_json()).unwrap(), sorted);
}

#[test]
fn malformed_sets_are_refused() {
    for json in [r#"{"k:{invalid json}":{}}"#, "[]", r#"{"f:a":1}"#, "{"] {
        assert!(FieldSet::from_json(json.as_bytes()).is_err(), "{json}");
    }
}

#[test]
fn keys_that_need_escapes_are_escaped_once() {
    let mut set = FieldSet::default();
    set.insert([PathElement::field("a\"b\\c\n")]);
    let json = set.to_json();
    assert_eq!(FieldSet::from_json(&json), Ok(set));
}

fn entry(manager: &str, operation: &str, seconds: Option<i64>, part: &str) -> ManagedFieldsEntry {
    ManagedFieldsEntry {
        manager: manager.into(),
        operation: operation.into(),
        api_version: "v1".into(),
        time: seconds.map(|seconds| Time {
            seconds: Some(seconds),
            nanos: Some(0),
        }),
        fields_type: "FieldsV1".into(),
        subresource: part.into(),
        ..Default::default()
    }
}

#[test]
fn entries_are_sorted_by_operation_time_manager_and_subresource() {
    let sorted = [
        entry("a", "Apply", None, ""),
        entry("a", "Apply", None, "scale"),
        entry("a", "Apply", None, "status"),
        entry("b", "Apply", Some(1), ""),
        entry("a", "Update", None, ""),
        entry("c", "Update", Some(1), ""),
        entry("d", "Update", Some(1), ""),
        entry("b", "Update", Some(2), ""),
    ];
    let mut shuffled = sorted.to_vec();
    shuffled.reverse();
    let encoded = Managers::decode(&shuffled).unwrap().encode();
    let keys = |entries: &[ManagedFieldsEntry]| {
        let key = |one: &ManagedFieldsEntry| {
            format!("{}{}{}", one.operation, one.manager, one.subresource)
        };
        entries.iter().map(key).collect::<Vec<_>>()
    };
    assert_eq!(keys(&encoded), keys(&sorted));
}

#[test]
fn malformed_entries_are_refused() {
    let good = entry("a", "Apply", None, "");
    let wrong = |change: fn(&mut ManagedFieldsEntry)| {
        let mut entry = good.clone();
        change(&mut entry);
        Managers::decode(&[entry]).unwrap_err()
    };
    assert!(Managers::decode(std::slice::from_ref(&good)).is_ok());
    for (problem, expected) in [
        (
            wrong(|one| one.operation = "Steal".into()),
            "operation must be `Apply` or `Update`",
        ),
        (
            wrong(|one| one.api_version.clear()),
            "apiVersion must not be empty",
        ),
        (
            wrong(|one| one.fields_type.clear()),
            "missing fieldsType in managed fields entry 0",
        ),
        (
            wrong(|one| one.fields_type = "FieldsV2".into()),
            r#"invalid fieldsType "FieldsV2" in managed fields entry 0"#,
        ),
    ] {
        assert_eq!(problem, expected);
    }
}
