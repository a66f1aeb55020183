//! The rules of fields beyond their types: JSON names, merge strategies, merge keys.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::LazyLock;

use prost_reflect::{FieldDescriptor, Kind as Type, MessageDescriptor};
use setpoint_proto::SCALARS;
use setpoint_proto::options::{FieldRules, Patch};

use crate::kinds::{extension, options, pool};

/// The rules of every message, built once.
#[derive(Debug)]
pub struct Rules {
    messages: HashMap<String, Message>,
}

/// The fields of a message as its JSON shows them: those of inlined messages stand among them.
#[derive(Debug)]
pub struct Message {
    /// Its short name, for example `DeploymentSpec`.
    pub name: String,
    /// May `kind` and `apiVersion` stand beside its fields?
    pub has_kind: bool,
    fields: BTreeMap<String, Field>,
}

/// A field and its rules, which it derefs to.
#[derive(Debug)]
pub struct Field {
    /// Its number, names and type.
    pub descriptor: FieldDescriptor,
    /// The type of one entry of a list or map, else of the field itself.
    pub element: Type,
    rules: FieldRules,
}

impl Deref for Field {
    type Target = FieldRules;

    fn deref(&self) -> &FieldRules {
        &self.rules
    }
}

/// The rules of a message by its full name, for example `k8s.core.v1.Pod`.
pub fn message(name: &str) -> Option<&'static Message> {
    rules().messages.get(name)
}

/// All rules.
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
        collect(message, &mut fields);
        Self {
            name: message.name().to_owned(),
            has_kind: message.options().has_extension(&extension("setpoint.kind")),
            fields,
        }
    }

    /// A field by its name in JSON.
    pub fn field(&self, json_name: &str) -> Option<&Field> {
        self.fields.get(json_name)
    }

    /// Every field, by name.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.values()
    }
}

fn collect(message: &MessageDescriptor, fields: &mut BTreeMap<String, Field>) {
    let extension = extension("setpoint.field");
    for descriptor in message.fields() {
        let rules: FieldRules = options(&descriptor.options(), &extension);
        match descriptor.kind() {
            Type::Message(inner) if rules.inline => collect(&inner, fields),
            _ => {
                let field = Field::new(descriptor, rules);
                fields.insert(field.descriptor.json_name().to_owned(), field);
            }
        }
    }
}

impl Field {
    fn new(descriptor: FieldDescriptor, rules: FieldRules) -> Self {
        let element = match descriptor.kind() {
            Type::Message(entry) if descriptor.is_map() => entry.map_entry_value_field().kind(),
            other => other,
        };
        Self {
            descriptor,
            element,
            rules,
        }
    }

    /// The message whose fields the JSON of an element shows; `None` for scalars, times, quantities and raw JSON.
    pub fn message(&self) -> Option<&'static Message> {
        match &self.element {
            Type::Message(message) if !SCALARS.contains(&message.full_name()) => {
                self::message(message.full_name())
            }
            _ => None,
        }
    }

    /// Whether a strategic patch merges this list's entries rather than replaces the list.
    pub fn merges(&self) -> bool {
        self.patch().any(|patch| patch == Patch::Merge)
    }

    /// Whether a strategic patch replaces this value as a whole.
    pub fn replaces(&self) -> bool {
        self.patch().any(|patch| patch == Patch::Replace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_inlined_messages_stand_among_those_of_the_message() {
        let probe = message("k8s.core.v1.Probe").unwrap();
        let names = probe.fields().map(|field| field.descriptor.json_name());
        let names: Vec<_> = names.collect();
        assert!(names.contains(&"httpGet") && names.contains(&"periodSeconds"));
        assert!(!names.contains(&"handler"));
    }

    #[test]
    fn what_is_no_object_in_json_has_no_message() {
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
