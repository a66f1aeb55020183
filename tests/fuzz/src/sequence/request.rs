//! Random parts of requests: paths, queries and bodies.

use arbitrary::{Result, Unstructured};
use serde_json::{Value, json};
use setpoint_codec::{Kind, kinds};

use crate::edit::{self, edit_part, number, text};
use crate::gateway::collection;

const NAMES: &[&str] = &["a", "b", "c"];
const NAMESPACES: &[&str] = &["default", "other"];
const LABELS: &[&str] = &[
    "",
    "app",
    "app=web",
    "app!=web",
    "!app",
    "app in (web,a)",
    "tier notin (5)",
    "tier>4",
];
const FIELDS: &[&str] = &[
    "",
    "metadata.name=a",
    "metadata.name!=a",
    "metadata.namespace=default",
    "spec.nodeName=",
    "spec.nodeName=node-1",
    "status.phase=Pending",
    "status.phase!=Pending",
];

/// The path of an object, which need not exist.
#[derive(Clone)]
pub struct ObjectPath {
    pub kind: &'static Kind,
    pub namespace: String,
    pub name: String,
}

impl ObjectPath {
    pub fn any(u: &mut Unstructured<'_>) -> Result<Self> {
        let all: Vec<_> = kinds().iter().collect();
        let kind = *u.choose(&all)?;
        let names = if kind.kind == "Namespace" {
            NAMESPACES
        } else {
            NAMES
        };
        Ok(Self {
            kind,
            namespace: (*u.choose(NAMESPACES)?).into(),
            name: (*u.choose(names)?).into(),
        })
    }

    pub fn collection(&self) -> String {
        collection(self.kind, &self.namespace)
    }

    pub fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

/// Returns selectors as a query. Kinds may reject them.
pub fn selection(u: &mut Unstructured<'_>) -> Result<String> {
    let label = u.choose(LABELS)?;
    let field = u.choose(FIELDS)?;
    let escape = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    Ok(format!(
        "labelSelector={}&fieldSelector={}",
        escape(label),
        escape(field)
    ))
}

/// Returns the content type and the body of a patch of the current object.
pub fn patch(
    kind: &Kind,
    part: &str,
    current: &Value,
    u: &mut Unstructured<'_>,
) -> Result<(&'static str, Value)> {
    let types = [
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ];
    if u.ratio(1, 3)? {
        return Ok(("application/json-patch+json", json_patch(current, u)?));
    }
    let mut body = json!({});
    for _ in 0..u.int_in_range(1..=2)? {
        edit_part(kind, part, &mut body, u)?;
    }
    if u.ratio(1, 4)? {
        let cut = walk(current, u)?;
        set_null(&mut body, &cut);
    }
    Ok((u.choose(&types)?, body))
}

fn json_patch(current: &Value, u: &mut Unstructured<'_>) -> Result<Value> {
    let mut operations = Vec::new();
    for _ in 0..u.int_in_range(1..=3)? {
        let (path, from) = (pointer(&walk(current, u)?), pointer(&walk(current, u)?));
        let value: Value = match u.int_in_range(0..=3)? {
            0 => number(u)?.into(),
            1 => current.pointer(&from).cloned().unwrap_or_default(),
            2 => u.choose(&[json!(null), json!({}), json!([])])?.clone(),
            _ => edit::text(u)?.into(),
        };
        let path = if u.ratio(1, 8)? {
            format!("{path}/{}", u.choose(&["-", "0", "a", "01"])?)
        } else {
            path
        };
        operations.push(match u.int_in_range(0..=5)? {
            0 => json!({ "op": "remove", "path": path }),
            1 => json!({ "op": "move", "from": from, "path": path }),
            2 => json!({ "op": "copy", "from": from, "path": path }),
            3 => json!({ "op": "add", "path": path, "value": value }),
            4 => json!({ "op": "test", "path": path, "value": current.pointer(&path) }),
            _ => json!({ "op": "replace", "path": path, "value": value }),
        });
    }
    Ok(operations.into())
}

/// The way to some value of the document.
fn walk(document: &Value, u: &mut Unstructured<'_>) -> Result<Vec<String>> {
    let (mut path, mut here) = (Vec::new(), document);
    loop {
        let below: Vec<String> = match here {
            Value::Object(fields) => fields.keys().cloned().collect(),
            Value::Array(items) => (0..items.len()).map(|at| at.to_string()).collect(),
            _ => return Ok(path),
        };
        if below.is_empty() || (!path.is_empty() && u.ratio(1, 4)?) {
            return Ok(path);
        }
        let key = u.choose(&below)?.clone();
        here = match here {
            Value::Array(items) => &items[key.parse::<usize>().expect("it was an index")],
            object => &object[&key],
        };
        path.push(key);
    }
}

fn pointer(path: &[String]) -> String {
    path.iter()
        .map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1")))
        .collect()
}

/// Sets what the way leads to, up to the first list, to null.
fn set_null(body: &mut Value, path: &[String]) {
    let mut here = body;
    for key in path {
        if !here.is_object() {
            *here = json!({});
        }
        here = here
            .as_object_mut()
            .expect("it was just set")
            .entry(key)
            .or_insert(Value::Null);
    }
    *here = Value::Null;
}

/// Returns options of a delete.
pub fn delete_options(u: &mut Unstructured<'_>) -> Result<Value> {
    let mut options = json!({});
    if u.ratio(1, 2)? {
        options["gracePeriodSeconds"] = number(u)?.into();
    }
    if u.ratio(1, 2)? {
        options["propagationPolicy"] =
            (*u.choose(&["Foreground", "Background", "Orphan", "x"])?).into();
    }
    if u.ratio(1, 8)? {
        options["preconditions"] = json!({ "uid": text(u)?, "resourceVersion": text(u)? });
    }
    Ok(options)
}
