//! What a sequence asks for: where, and with what.

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

/// An object, or where it would be.
#[derive(Clone)]
pub struct Place {
    pub kind: &'static Kind,
    pub namespace: String,
    pub name: String,
}

impl Place {
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

/// Selectors as a query; those that a kind does not know are refused.
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

/// A patch of an object as it stands: its type and its body.
pub fn patch(
    kind: &Kind,
    part: &str,
    now: &Value,
    u: &mut Unstructured<'_>,
) -> Result<(&'static str, Value)> {
    let types = [
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ];
    if u.ratio(1, 3)? {
        return Ok(("application/json-patch+json", json_patch(now, u)?));
    }
    let mut body = json!({});
    for _ in 0..u.int_in_range(1..=2)? {
        edit_part(kind, part, &mut body, u)?;
    }
    if u.ratio(1, 4)? {
        let cut = walk(now, u)?;
        nothing_at(&mut body, &cut);
    }
    Ok((u.choose(&types)?, body))
}

fn json_patch(now: &Value, u: &mut Unstructured<'_>) -> Result<Value> {
    let mut operations = Vec::new();
    for _ in 0..u.int_in_range(1..=3)? {
        let (path, from) = (pointer(&walk(now, u)?), pointer(&walk(now, u)?));
        let value: Value = match u.int_in_range(0..=3)? {
            0 => number(u)?.into(),
            1 => now.pointer(&from).cloned().unwrap_or_default(),
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
            4 => json!({ "op": "test", "path": path, "value": now.pointer(&path) }),
            _ => json!({ "op": "replace", "path": path, "value": value }),
        });
    }
    Ok(operations.into())
}

/// The way to some value of the document.
fn walk(document: &Value, u: &mut Unstructured<'_>) -> Result<Vec<String>> {
    let (mut way, mut here) = (Vec::new(), document);
    loop {
        let below: Vec<String> = match here {
            Value::Object(fields) => fields.keys().cloned().collect(),
            Value::Array(items) => (0..items.len()).map(|at| at.to_string()).collect(),
            _ => return Ok(way),
        };
        if below.is_empty() || (!way.is_empty() && u.ratio(1, 4)?) {
            return Ok(way);
        }
        let key = u.choose(&below)?.clone();
        here = match here {
            Value::Array(items) => &items[key.parse::<usize>().expect("it was one")],
            object => &object[&key],
        };
        way.push(key);
    }
}

fn pointer(way: &[String]) -> String {
    way.iter()
        .map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1")))
        .collect()
}

/// Sets what the way leads to, up to the first list, to null.
fn nothing_at(body: &mut Value, way: &[String]) {
    let mut here = body;
    for key in way {
        if !here.is_object() {
            *here = json!({});
        }
        here = here
            .as_object_mut()
            .expect("it is one now")
            .entry(key)
            .or_insert(Value::Null);
    }
    *here = Value::Null;
}

/// Options of a delete.
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
