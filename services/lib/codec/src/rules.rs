//! The options of fields: JSON names, merge strategies, merge keys.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::{LazyLock, OnceLock};

use prost_reflect::{FieldDescriptor, Kind as Type, MessageDescriptor};
use setpoint_proto::SCALARS;
use setpoint_proto::options::{FieldRules, Patch};

use crate::fields::Shape;
use crate::kinds::{extension, options, pool};

/// The messages that server-side apply owns as a whole.
const ATOMIC: &[&str] = &[
    "k8s.admissionregistration.v1.MatchResources",
    "k8s.admissionregistration.v1.NamedRuleWithOperations",
    "k8s.admissionregistration.v1.ParamKind",
    "k8s.admissionregistration.v1.ParamRef",
    "k8s.admissionregistration.v1.Variable",
    "k8s.autoscaling.v1.CrossVersionObjectReference",
    "k8s.core.v1.ConfigMapKeySelector",
    "k8s.core.v1.EndpointAddress",
    "k8s.core.v1.EndpointPort",
    "k8s.core.v1.FileKeySelector",
    "k8s.core.v1.LocalObjectReference",
    "k8s.core.v1.NodeSelector",
    "k8s.core.v1.NodeSelectorTerm",
    "k8s.core.v1.ObjectFieldSelector",
    "k8s.core.v1.ObjectReference",
    "k8s.core.v1.ResourceFieldSelector",
    "k8s.core.v1.ScopeSelector",
    "k8s.core.v1.SecretKeySelector",
    "k8s.core.v1.SecretReference",
    "k8s.core.v1.TopologySelectorTerm",
    "k8s.core.v1.TypedLocalObjectReference",
    "k8s.discovery.v1.EndpointPort",
    "k8s.meta.v1.LabelSelector",
    "k8s.meta.v1.OwnerReference",
    "k8s.networking.v1.ServiceBackendPort",
    "k8s.rbac.v1.RoleRef",
    "k8s.rbac.v1.Subject",
];

/// The messages that are a scalar in JSON, and of which each value has one encoding. The others hold JSON, or fields
/// that do not apply.
const CANONICAL: &[&str] = &[
    "k8s.meta.v1.Duration",
    "k8s.meta.v1.MicroTime",
    "k8s.meta.v1.Quantity",
    "k8s.meta.v1.Time",
];

/// The rules of all messages.
#[derive(Debug)]
pub struct Rules {
    messages: HashMap<String, Message>,
}

/// The fields of a message in its JSON form, in which those of inlined messages are included.
#[derive(Debug)]
pub struct Message {
    /// Its short name, for example `DeploymentSpec`.
    pub name: String,
    /// Whether its JSON may have `kind` and `apiVersion`.
    pub has_kind: bool,
    /// Whether server-side apply owns it as a whole (upstream: `structType=atomic`).
    pub is_atomic: bool,
    /// Sorted by their names.
    fields: Vec<(String, Field)>,
}

/// A field. Dereferences to its rules.
#[derive(Debug)]
pub struct Field {
    /// The descriptor.
    pub descriptor: FieldDescriptor,
    /// The type of the entries of a list or map, or else of the field.
    pub element: Type,
    /// Its number, after those of the inlined messages that it is in, outermost first.
    pub path: Vec<u32>,
    rules: FieldRules,
    message: OnceLock<Option<&'static Message>>,
    shapes: OnceLock<Shapes>,
    is_canonical: OnceLock<bool>,
}

/// The structures of a field and of its elements, as server-side apply needs them for each value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shapes {
    pub(crate) whole: Shape<'static>,
    pub(crate) element: Shape<'static>,
}

impl Deref for Field {
    type Target = FieldRules;

    fn deref(&self) -> &FieldRules {
        &self.rules
    }
}

/// Returns the rules of a message by its full name, for example `k8s.core.v1.Pod`.
pub fn message(name: &str) -> Option<&'static Message> {
    rules().messages.get(name)
}

/// Returns the rules of all messages.
pub fn rules() -> &'static Rules {
    static RULES: LazyLock<Rules> = LazyLock::new(Rules::read);
    &RULES
}

impl Rules {
    fn read() -> Self {
        let messages = pool()
            .all_messages()
            .map(|message| (message.full_name().to_owned(), Message::read(&message)));
        Self {
            messages: messages.collect(),
        }
    }
}

impl Message {
    fn read(message: &MessageDescriptor) -> Self {
        let mut fields = BTreeMap::new();
        collect(message, &[], &mut fields);
        Self {
            name: message.name().to_owned(),
            has_kind: message.options().has_extension(&extension("setpoint.kind")),
            is_atomic: ATOMIC.contains(&message.full_name()),
            fields: fields.into_iter().collect(),
        }
    }

    /// Returns a field by its name in JSON.
    pub fn field(&self, json_name: &str) -> Option<&Field> {
        let found = self
            .fields
            .binary_search_by(|(name, _)| name.as_str().cmp(json_name));
        found.ok().map(|at| &self.fields[at].1)
    }

    /// Returns all fields, sorted by name.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().map(|(_, field)| field)
    }
}

/// Adds the fields of a message, which is inlined in the fields with the numbers `within`.
fn collect(message: &MessageDescriptor, within: &[u32], fields: &mut BTreeMap<String, Field>) {
    let extension = extension("setpoint.field");
    for descriptor in message.fields() {
        let rules: FieldRules = options(&descriptor.options(), &extension);
        let path = [within, &[descriptor.number()]].concat();
        match descriptor.kind() {
            Type::Message(inner) if rules.inline => collect(&inner, &path, fields),
            _ => {
                let field = Field::new(descriptor, path, rules);
                fields.insert(field.descriptor.json_name().to_owned(), field);
            }
        }
    }
}

impl Field {
    fn new(descriptor: FieldDescriptor, path: Vec<u32>, rules: FieldRules) -> Self {
        let element = match descriptor.kind() {
            Type::Message(entry) if descriptor.is_map() => entry.map_entry_value_field().kind(),
            other => other,
        };
        Self {
            descriptor,
            element,
            path,
            rules,
            message: OnceLock::new(),
            shapes: OnceLock::new(),
            is_canonical: OnceLock::new(),
        }
    }

    /// Returns the message of an element; `None` for scalars, times, quantities and raw JSON.
    pub fn message(&self) -> Option<&'static Message> {
        *self.message.get_or_init(|| match &self.element {
            Type::Message(message) if !SCALARS.contains(&message.full_name()) => {
                self::message(message.full_name())
            }
            _ => None,
        })
    }

    /// Returns the structures of the field and of its elements.
    pub(crate) fn shapes(&'static self) -> Shapes {
        *self.shapes.get_or_init(|| Shapes {
            whole: Shape::of(self),
            element: Shape::of_element(self),
        })
    }

    /// Returns whether values whose encodings differ have different JSON.
    pub(crate) fn is_canonical(&self) -> bool {
        *self
            .is_canonical
            .get_or_init(|| is_canonical(&self.element, &mut Vec::new()))
    }

    /// Returns whether a strategic merge patch merges the entries of this list.
    pub fn merges(&self) -> bool {
        self.patch().any(|patch| patch == Patch::Merge)
    }

    /// Returns whether a strategic merge patch replaces this object as a whole.
    pub fn replaces(&self) -> bool {
        self.patch().any(|patch| patch == Patch::Replace)
    }
}

/// Returns whether values of a type have one encoding. `within` are the messages that it is in.
fn is_canonical(of: &Type, within: &mut Vec<String>) -> bool {
    let Type::Message(message) = of else {
        return true;
    };
    let name = message.full_name().to_owned();
    if SCALARS.contains(&&*name) {
        return CANONICAL.contains(&&*name);
    }
    if within.contains(&name) {
        return true;
    }
    within.push(name);
    message
        .fields()
        .all(|field| is_canonical(&field.kind(), within))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_includes_the_fields_of_inlined_messages() {
        let probe = message("k8s.core.v1.Probe").unwrap();
        let names = probe.fields().map(|field| field.descriptor.json_name());
        let names: Vec<_> = names.collect();
        assert!(names.contains(&"httpGet") && names.contains(&"periodSeconds"));
        assert!(!names.contains(&"handler"));
    }

    #[test]
    fn only_fields_that_are_objects_in_json_have_a_message() {
        let meta = message("k8s.meta.v1.ObjectMeta").unwrap();
        for (field, message) in [
            ("creationTimestamp", None),
            ("labels", None),
            ("name", None),
            ("ownerReferences", Some("OwnerReference")),
        ] {
            let found = meta.field(field).unwrap().message();
            assert_eq!(found.map(|found| &*found.name), message, "{field}");
        }
    }
}
