//! JSON documents with the keys in the order of Go's structs: some clients, and upstream's own tests, compare the text.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// The order of the keys of an object, each with the order of its value. Other keys follow, sorted by name. That of a
/// list is the order of its entries.
pub(super) struct Order(&'static [(&'static str, &'static Order)]);

static SORTED: Order = Order(&[]);

macro_rules! orders {
    (@of) => { &SORTED };
    (@of $of:ident) => { &$of };
    ($($name:ident = [$($key:literal $(: $of:ident)?),* $(,)?];)*) => {
        $(pub(super) static $name: Order = Order(&[$(($key, orders!(@of $($of)?))),*]);)*
    };
}

orders! {
    VERSION_INFO = [
        "major", "minor", "emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor", "gitVersion",
        "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform",
    ];

    API_VERSIONS = ["kind", "versions", "serverAddressByClientCIDRs": SERVER_ADDRESS];
    API_GROUP_LIST = ["kind", "apiVersion", "groups": API_GROUP];
    API_GROUP = [
        "kind", "apiVersion", "name", "versions": GROUP_VERSION, "preferredVersion": GROUP_VERSION,
        "serverAddressByClientCIDRs": SERVER_ADDRESS,
    ];
    GROUP_VERSION = ["groupVersion", "version"];
    SERVER_ADDRESS = ["clientCIDR", "serverAddress"];
    API_RESOURCE_LIST = ["kind", "apiVersion", "groupVersion", "resources": API_RESOURCE];
    API_RESOURCE = [
        "name", "singularName", "namespaced", "group", "version", "kind", "verbs", "shortNames", "categories",
        "storageVersionHash",
    ];

    DISCOVERY = ["kind", "apiVersion", "metadata": METADATA, "items": DISCOVERED_GROUP];
    DISCOVERED_GROUP = ["metadata": METADATA, "versions": DISCOVERED_VERSION];
    DISCOVERED_VERSION = ["version", "resources": DISCOVERED_RESOURCE, "freshness"];
    DISCOVERED_RESOURCE = [
        "resource", "responseKind": KIND, "scope", "singularResource", "verbs", "shortNames", "categories",
        "subresources": DISCOVERED_SUBRESOURCE,
    ];
    DISCOVERED_SUBRESOURCE = ["subresource", "responseKind": KIND, "acceptedTypes": KIND, "verbs"];
    KIND = ["group", "version", "kind"];

    // A Table, or the metadata of objects.
    CONVERTED = [
        "kind", "apiVersion", "metadata": METADATA, "columnDefinitions": COLUMN, "rows": ROW, "items": OBJECT,
    ];
    COLUMN = ["name", "type", "format", "description", "priority"];
    ROW = ["cells", "conditions": CONDITION, "object": OBJECT];
    CONDITION = ["type", "status", "reason", "message"];
    OBJECT = ["kind", "apiVersion", "metadata": METADATA];
    // That of lists and that of objects.
    METADATA = [
        "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "continue", "remainingItemCount",
        "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations",
        "ownerReferences": OWNER, "finalizers", "managedFields": MANAGER,
    ];
    OWNER = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    MANAGER = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];
}

struct Ordered<'a> {
    value: &'a Value,
    order: &'static Order,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let with = |value, order| Ordered { value, order };
        match self.value {
            Value::Array(items) => {
                serializer.collect_seq(items.iter().map(|item| with(item, self.order)))
            }
            Value::Object(object) => {
                let Order(keys) = self.order;
                let known = keys.iter().filter_map(|(key, of)| {
                    let value = object.get(*key)?;
                    Some((*key, with(value, of)))
                });
                let is_known = |key: &str| keys.iter().any(|(known, _)| *known == key);
                let others = object.iter().filter(|(key, _)| !is_known(key));
                let others = others.map(|(key, value)| (key.as_str(), with(value, &SORTED)));
                serializer.collect_map(known.chain(others))
            }
            scalar => scalar.serialize(serializer),
        }
    }
}

/// Returns the JSON of a document.
pub(super) fn json(document: &Value, order: &'static Order) -> Vec<u8> {
    let ordered = Ordered {
        value: document,
        order,
    };
    serde_json::to_vec(&ordered).expect("a document has only JSON values")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks T1.
    #[test]
    fn keys_have_the_order_of_their_struct_and_others_follow() {
        let document = json!({
            "resources": [{"kind": "Pod", "namespaced": true, "singularName": "pod", "name": "pods", "a": {"c": 1, "b": 2}}],
            "kind": "APIResourceList",
            "groupVersion": "v1",
        });
        let text = json(&document, &API_RESOURCE_LIST);
        let expected = r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","a":{"b":2,"c":1}}]}"#;
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
