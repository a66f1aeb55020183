//! The text of the log, and tables of objects.

use std::collections::BTreeMap;

use serde_json::Value;
use setpoint_model::replicas::SYSTEM_NAMESPACE;
use setpoint_simulation::{Change, Entry, Planned, Refusal, short};

/// The largest number of fields that the line of a write names.
const MOST_FIELDS: usize = 8;
/// Fields that change with each write, or follow from others.
const UNSAID: [&str; 12] = [
    "managedFields",
    "resourceVersion",
    "generation",
    "observedGeneration",
    "uid",
    "containerStatuses",
    "podIP",
    "podIPs",
    "hostIP",
    "hostIPs",
    "collisionCount",
    "completionTime",
];

/// Returns the lines of entries.
pub fn lines(entries: Vec<Entry>) -> Vec<String> {
    entries.into_iter().filter_map(line).collect()
}

fn line(entry: Entry) -> Option<String> {
    match entry {
        Entry::Planned(planned) => Some(plan(planned)),
        Entry::Changed(change) => write(&change),
        Entry::Refused(Refusal {
            process,
            call,
            error,
        }) => Some(format!("refuse {process}: {call}: {error}")),
        Entry::Lost(process, call) => Some(format!("lose   the answer to {process}: {call}")),
        Entry::Crashed(process) => Some(format!("crash  {process}")),
    }
}

fn plan(planned: Planned) -> String {
    let Planned {
        controller,
        object,
        action,
        because,
        woken_by,
    } = planned;
    let object = match object.split_once(' ') {
        // The garbage collector reconciles uids; its actions name the object.
        Some((kind, key)) if is_uid(key) => kind.to_owned(),
        _ => object.replace(" default/", " "),
    };
    let woken = match woken_by.as_str() {
        "" => String::new(),
        writers => format!(" (after {writers})"),
    };
    format!("plan   {controller} for {object}{woken}: {action} because {because}")
}

fn write(change: &Change) -> Option<String> {
    let name = short(&change.key);
    match change.kind.kind.as_str() {
        "Lease" => lead(change),
        "Event" => event(change.after.as_ref()?),
        kind => {
            let kind = kind.to_lowercase();
            let cause = change.cause.clone().unwrap_or_default();
            let term = match cause.term {
                0 => String::new(),
                term => format!(" in term {term}"),
            };
            let done = match (&change.before, &change.after) {
                (None, _) => format!("create {kind} {name}"),
                (_, None) => format!("remove {kind} {name}"),
                (Some(before), Some(after)) => {
                    format!("update {kind} {name}: {}", differences(before, after))
                }
            };
            Some(format!("write  {}{term}: {done}", cause.writer))
        }
    }
}

/// Returns the line of a new leader.
fn lead(change: &Change) -> Option<String> {
    let holder = |lease: Option<&Value>| {
        let holder = lease?["spec"]["holderIdentity"].as_str()?;
        Some(holder.to_owned())
    };
    let now = holder(change.after.as_ref())?;
    let is_new = holder(change.before.as_ref()).is_none_or(|before| before != now);
    let is_election = change.key.namespace == SYSTEM_NAMESPACE && now.contains('_');
    (is_election && is_new && !now.is_empty()).then(|| format!("lead   {}", self::holder(&now)))
}

/// Returns the process of a holder's identity.
pub fn holder(identity: &str) -> &str {
    identity
        .rsplit_once('_')
        .map_or(identity, |(process, _)| process)
}

fn event(event: &Value) -> Option<String> {
    let about = &event["involvedObject"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (kind, name) = (text(&about["kind"])?, text(&about["name"])?);
    let (reason, message) = (text(&event["reason"])?, text(&event["message"])?);
    let count = event["count"]
        .as_i64()
        .or(event["series"]["count"].as_i64());
    let times = match count {
        Some(count) if count > 1 => format!(" ({count} times)"),
        _ => String::new(),
    };
    Some(format!(
        "event  {} {name}: {reason}: {message}{times}",
        kind.to_lowercase()
    ))
}

fn differences(before: &Value, after: &Value) -> String {
    let (before, after) = (flat(before), flat(after));
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let changed = names
        .iter()
        .filter(|name| before.get(**name) != after.get(**name));
    let said = changed.map(|name| match (before.get(*name), after.get(*name)) {
        (None, Some(new)) => format!("{name} {new}"),
        (Some(old), None) => format!("{name} {old} → none"),
        (old, new) => format!("{name} {} → {}", old.unwrap(), new.unwrap()),
    });
    let mut said: Vec<_> = said.collect();
    let more = said.len().saturating_sub(MOST_FIELDS);
    said.truncate(MOST_FIELDS);
    if more > 0 {
        said.push(format!("and {more} more"));
    }
    match said.is_empty() {
        true => "nothing to see".into(),
        false => said.join(", "),
    }
}

/// Returns the fields of an object by their paths, without those that say nothing.
fn flat(object: &Value) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    flatten(object, "", &mut fields);
    fields
}

fn flatten(value: &Value, path: &str, fields: &mut BTreeMap<String, String>) {
    let under = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                if !UNSAID.contains(&name.as_str()) {
                    flatten(value, &under(name), fields);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let name = ["type", "name", "key"]
                    .iter()
                    .find_map(|name| item[*name].as_str());
                let name = name.map_or_else(|| at.to_string(), str::to_owned);
                let path = format!("{path}[{name}]");
                match (path.contains("conditions["), &item["status"]) {
                    (true, Value::String(status)) => {
                        let reason = item["reason"].as_str().filter(|reason| !reason.is_empty());
                        let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
                        fields.insert(path, format!("{status}{reason}"));
                    }
                    _ => flatten(item, &path, fields),
                }
            }
        }
        Value::Null => {}
        Value::String(text) if is_time(text) && !path.ends_with("deletionTimestamp") => {}
        Value::String(text) if is_time(text) => _ = fields.insert(path.to_owned(), "set".into()),
        Value::String(text) if is_uid(text) => _ = fields.insert(path.to_owned(), "(uid)".into()),
        Value::String(text) => _ = fields.insert(path.to_owned(), text.clone()),
        value => _ = fields.insert(path.to_owned(), value.to_string()),
    }
}

fn is_time(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok()
}

fn is_uid(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    text.len() == 36 && text.matches('-').count() == 4 && text.chars().all(is_part)
}

/// The columns of `show`: a kind, and the paths of its columns.
const COLUMNS: &[(&str, &[(&str, &str)])] = &[
    (
        "Pod",
        &[
            ("owner", "/metadata/ownerReferences/0/name"),
            ("node", "/spec/nodeName"),
            ("phase", "/status/phase"),
            ("image", "/spec/containers/0/image"),
            ("deleted", "/metadata/deletionTimestamp"),
        ],
    ),
    (
        "Deployment",
        &[
            ("replicas", "/spec/replicas"),
            ("updated", "/status/updatedReplicas"),
            ("available", "/status/availableReplicas"),
            ("image", "/spec/template/spec/containers/0/image"),
        ],
    ),
    (
        "ReplicaSet",
        &[
            ("replicas", "/spec/replicas"),
            ("ready", "/status/readyReplicas"),
            ("image", "/spec/template/spec/containers/0/image"),
        ],
    ),
    (
        "StatefulSet",
        &[
            ("replicas", "/spec/replicas"),
            ("ready", "/status/readyReplicas"),
            ("updated", "/status/updatedReplicas"),
        ],
    ),
    (
        "DaemonSet",
        &[
            ("desired", "/status/desiredNumberScheduled"),
            ("ready", "/status/numberReady"),
        ],
    ),
    (
        "Job",
        &[
            ("active", "/status/active"),
            ("succeeded", "/status/succeeded"),
            ("failed", "/status/failed"),
            ("condition", "/status/conditions/0/type"),
        ],
    ),
    ("Namespace", &[("phase", "/status/phase")]),
    (
        "ResourceQuota",
        &[("hard", "/status/hard/pods"), ("used", "/status/used/pods")],
    ),
    (
        "Node",
        &[
            ("ready", "/status/conditions/0/status"),
            ("taint", "/spec/taints/0/key"),
        ],
    ),
];

/// Returns a line for each object, and one that says that there is none.
pub fn table(kind: &str, objects: &[Value]) -> Vec<String> {
    let columns = COLUMNS.iter().find(|(name, _)| *name == kind);
    let columns = columns.map_or(&[][..], |(_, columns)| columns);
    let row = |object: &Value| {
        let mut row = object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        for (name, path) in columns {
            match object.pointer(path) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) if is_time(text) => row += &format!("  {name}"),
                Some(Value::String(text)) => row += &format!("  {name} {text}"),
                Some(value) => row += &format!("  {name} {value}"),
            }
        }
        row
    };
    match objects.is_empty() {
        true => vec!["none".into()],
        false => objects.iter().map(row).collect(),
    }
}
