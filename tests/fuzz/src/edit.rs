//! Changes fields of valid documents to arbitrary values.

use arbitrary::{Result, Unstructured};
use prost_reflect::Kind as Type;
use serde_json::{Map, Value, json};
use setpoint_codec::Kind;
use setpoint_codec::rules::{self, Field, Message};

/// The maximum depth of a change.
const DEPTH: usize = 12;

/// Texts that have a meaning in some field, and meaningless ones.
const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "c",
    "web",
    "app",
    "http",
    "default",
    "other",
    "node-1",
    "A-",
    "_",
    "..",
    "/",
    "../x",
    "/a/b",
    "é",
    "\u{0}",
    "a,b=c",
    "app=web",
    "example.com/a",
    "kubernetes.io/hostname",
    "foregroundDeletion",
    "orphan",
    "kubernetes",
    "0",
    "1",
    "-1",
    "10%",
    "100%",
    "101%",
    "1Gi",
    "100m",
    "1e3",
    "-5",
    "9223372036854775808",
    "0.0000000001",
    "7Ei",
    "2026-01-02T03:04:05Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "-009999-01-02T01:59:59Z",
    "In",
    "NotIn",
    "Exists",
    "DoesNotExist",
    "Gt",
    "Lt",
    "Equal",
    "NoSchedule",
    "NoExecute",
    "PreferNoSchedule",
    "Always",
    "Never",
    "OnFailure",
    "IfNotPresent",
    "TCP",
    "UDP",
    "SCTP",
    "ClusterIP",
    "NodePort",
    "None",
    "ExternalName",
    "LoadBalancer",
    "10.96.0.10",
    "127.0.0.1",
    "::1",
    "IPv4",
    "IPv6",
    "SingleStack",
    "PreferDualStack",
    "Local",
    "Cluster",
    "RollingUpdate",
    "Recreate",
    "Pending",
    "Running",
    "Succeeded",
    "Failed",
    "Terminating",
    "Active",
    "True",
    "False",
    "Unknown",
    "Ready",
    "Available",
    "Progressing",
    "Pod",
    "ReplicaSet",
    "Deployment",
    "Namespace",
    "v1",
    "apps/v1",
    "Normal",
    "Warning",
    "Memory",
    "cpu",
    "memory",
    "pods",
    "ephemeral-storage",
    "hugepages-2Mi",
    "ALL",
    "Guaranteed",
    "Opaque",
    "kubernetes.io/service-account-token",
    "kubernetes.io/tls",
    "kubernetes.io/dockerconfigjson",
    "Yg==",
    "!",
    "deployment.kubernetes.io/revision",
];

const QUANTITIES: &[&str] = &[
    "0",
    "1",
    "-1",
    "10m",
    "1.5",
    "1Gi",
    "1e3",
    "7Ei",
    "9223372036854775807",
    "0.0000000001",
];

const TIMES: &[&str] = &[
    "2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05.123456Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "-009999-01-02T01:59:59Z",
    "2026-01-02T03:04:05+01:00",
];

const NUMBERS: &[i64] = &[
    0,
    1,
    -1,
    2,
    3,
    30,
    80,
    100,
    255,
    1_000,
    30_000,
    65_535,
    65_536,
    1 << 31,
    i32::MAX as i64,
    i32::MIN as i64,
    i64::MAX,
    i64::MIN,
    253_402_300_799,
    1 << 53,
];

/// Changes a few fields of a document.
pub fn edit(kind: &Kind, document: &mut Value, u: &mut Unstructured<'_>) -> Result<()> {
    for _ in 0..u.int_in_range(0..=3)? {
        edit_part(kind, "", document, u)?;
    }
    Ok(())
}

/// Changes one field of the top-level field `part`, or of the document if that is empty.
pub fn edit_part(
    kind: &Kind,
    part: &str,
    document: &mut Value,
    u: &mut Unstructured<'_>,
) -> Result<()> {
    let message = rules::message(kind.message.full_name()).expect("every kind has rules");
    match message.field(part) {
        Some(field) => descend(field, member(document, part), u, 0),
        None => edit_message(message, document, u, 0),
    }
}

fn member<'a>(document: &'a mut Value, name: &str) -> &'a mut Value {
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    document
        .as_object_mut()
        .expect("it was just set")
        .entry(name)
        .or_insert(Value::Null)
}

fn edit_message(
    message: &'static Message,
    document: &mut Value,
    u: &mut Unstructured<'_>,
    depth: usize,
) -> Result<()> {
    let fields: Vec<_> = message.fields().collect();
    if fields.is_empty() {
        return Ok(());
    }
    let field = *u.choose(&fields)?;
    descend(
        field,
        member(document, field.descriptor.json_name()),
        u,
        depth,
    )
}

fn descend(
    field: &'static Field,
    value: &mut Value,
    u: &mut Unstructured<'_>,
    depth: usize,
) -> Result<()> {
    if depth >= DEPTH || u.ratio(1, 40)? {
        *value = field_value(field, u)?;
        return Ok(());
    }
    if field.descriptor.is_list() {
        edit_list(field, value, u, depth)
    } else if field.descriptor.is_map() {
        let key = *u.choose(TEXTS)?;
        element(field, member(value, key), u, depth)
    } else {
        element(field, value, u, depth)
    }
}

fn edit_list(
    field: &'static Field,
    value: &mut Value,
    u: &mut Unstructured<'_>,
    depth: usize,
) -> Result<()> {
    if !value.is_array() {
        *value = json!([]);
    }
    let items = value.as_array_mut().expect("it was just set");
    let at = u.int_in_range(0..=items.len())?;
    match items.get(at).cloned() {
        Some(_) if u.ratio(1, 8)? => drop(items.remove(at)),
        Some(item) if u.ratio(1, 8)? => items.push(item),
        Some(_) => {}
        None => items.push(Value::Null),
    }
    match items.get_mut(at) {
        Some(item) => element(field, item, u, depth),
        None => Ok(()),
    }
}

fn element(
    field: &'static Field,
    value: &mut Value,
    u: &mut Unstructured<'_>,
    depth: usize,
) -> Result<()> {
    match field.message() {
        Some(message) => {
            for _ in 0..u.int_in_range(1..=3)? {
                edit_message(message, value, u, depth + 1)?;
            }
            Ok(())
        }
        None => {
            *value = field_value(field, u)?;
            Ok(())
        }
    }
}

/// Returns a value for a field, mostly of its type.
fn field_value(field: &Field, u: &mut Unstructured<'_>) -> Result<Value> {
    if u.ratio(1, 24)? {
        return Ok(u
            .choose(&[
                json!(null),
                json!([]),
                json!({}),
                json!(1.5),
                json!([null]),
                json!({ "a": {} }),
            ])?
            .clone());
    }
    Ok(match &field.element {
        Type::Bool => json!(u.arbitrary::<bool>()?),
        Type::String | Type::Bytes => text(u)?.into(),
        Type::Message(message) => scalar(message.name(), u)?,
        Type::Int32 => json!(i32::try_from(number(u)?).unwrap_or(i32::MAX)),
        _ => number(u)?.into(),
    })
}

/// Returns a value for a quantity, a time or a port: mostly a valid one.
fn scalar(message: &str, u: &mut Unstructured<'_>) -> Result<Value> {
    let texts = match message {
        "Quantity" => QUANTITIES,
        "Time" | "MicroTime" => TIMES,
        _ => TEXTS,
    };
    Ok(match u.int_in_range(0..=7)? {
        0 => number(u)?.into(),
        1 => text(u)?.into(),
        _ => (*u.choose(texts)?).into(),
    })
}

/// Returns a text.
pub fn text(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(match u.int_in_range(0..=15)? {
        0 => u.arbitrary::<&str>()?.into(),
        1 => "x".repeat(usize::from(*u.choose(&[63_u16, 64, 253, 254, 1_025])?)),
        2 => format!("{}{}", u.choose(TEXTS)?, u.choose(TEXTS)?),
        _ => (*u.choose(TEXTS)?).into(),
    })
}

/// Returns a number.
pub fn number(u: &mut Unstructured<'_>) -> Result<i64> {
    Ok(match u.ratio(1, 8)? {
        true => u.arbitrary()?,
        false => *u.choose(NUMBERS)?,
    })
}
