//! The paths of all fields of all stored kinds.

use prost_reflect::Kind as Type;
use serde_json::{Value, json};
use setpoint_codec::rules::{self, Field, Message};
use setpoint_codec::{Kind, kinds};

/// A field of a kind, and the fields that it is in. Lists on the way have one entry, and maps the key `a`.
pub struct Path {
    pub kind: &'static Kind,
    pub fields: Vec<&'static Field>,
}

/// Returns the paths of all served kinds whose objects are stored. No message is within itself.
pub fn all() -> Vec<Path> {
    let mut paths = Vec::new();
    let stored = kinds().served().filter(|kind| kind.stored().is_stored());
    for kind in stored {
        let message = rules::message(kind.message.full_name()).unwrap();
        visit(kind, message, &mut Vec::new(), &mut paths);
    }
    paths
}

fn visit(
    kind: &'static Kind,
    message: &'static Message,
    within: &mut Vec<&'static Field>,
    paths: &mut Vec<Path>,
) {
    for field in message.fields() {
        let is_within = within.iter().any(|outer| outer.element == field.element);
        within.push(field);
        let fields = within.clone();
        paths.push(Path { kind, fields });
        if let Some(inner) = field.message().filter(|_| !is_within) {
            visit(kind, inner, within, paths);
        }
        within.pop();
    }
}

impl Path {
    /// Returns the last field.
    pub fn field(&self) -> &'static Field {
        self.fields.last().unwrap()
    }

    /// Returns the full name of the last field, for example `k8s.core.v1.PodSpec.node_name`.
    pub fn name(&self) -> String {
        self.field().descriptor.full_name().to_owned()
    }

    /// Returns whether the field is in the status.
    pub fn is_of_status(&self) -> bool {
        self.fields[0].descriptor.json_name() == "status"
    }

    /// Returns the path as errors have it, for example `spec.containers[0].name`.
    pub fn shown(&self) -> String {
        let (last, outer) = self.fields.split_last().unwrap();
        let outer = outer.iter().map(|field| {
            let index = match (field.descriptor.is_list(), field.descriptor.is_map()) {
                (true, _) => "[0]",
                (_, true) => "[a]",
                _ => "",
            };
            format!("{}{index}.", field.descriptor.json_name())
        });
        outer
            .chain([last.descriptor.json_name().to_owned()])
            .collect()
    }

    /// Returns the object with the field set; what it is in is added where it is missing.
    pub fn put(&self, object: &Value, value: Value) -> Value {
        let mut object = object.clone();
        let parent = self.parent(&mut object);
        parent[self.field().descriptor.json_name()] = value;
        object
    }

    /// Returns the object without the field; what it is in is added where it is missing.
    pub fn without(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let parent = self.parent(&mut object);
        parent
            .as_object_mut()
            .unwrap()
            .remove(self.field().descriptor.json_name());
        object
    }

    /// Returns the value of the field.
    pub fn get(&self, object: &Value) -> Value {
        let mut object = object.clone();
        self.parent(&mut object)[self.field().descriptor.json_name()].take()
    }

    fn parent<'v>(&self, object: &'v mut Value) -> &'v mut Value {
        let outer = &self.fields[..self.fields.len() - 1];
        outer.iter().fold(object, |within, field| {
            let value = &mut within[field.descriptor.json_name()];
            match (field.descriptor.is_list(), field.descriptor.is_map()) {
                (true, _) => {
                    if value.as_array().is_none_or(Vec::is_empty) {
                        *value = json!([{}]);
                    }
                    &mut value[0]
                }
                (_, true) => object_at(&mut value["a"]),
                _ => object_at(value),
            }
        })
    }
}

fn object_at(value: &mut Value) -> &mut Value {
    if value.is_null() {
        *value = json!({});
    }
    value
}

/// Returns two different values that a field can have by its type.
pub fn values(field: &Field) -> [Value; 2] {
    values_to(field, 3)
}

fn values_to(field: &Field, depth: usize) -> [Value; 2] {
    let elements = elements(&field.element, depth);
    elements.map(
        |element| match (field.descriptor.is_list(), field.descriptor.is_map()) {
            (true, _) => json!([element]),
            (_, true) => json!({ "a": element }),
            _ => element,
        },
    )
}

fn elements(of: &Type, depth: usize) -> [Value; 2] {
    match of {
        Type::Bool => [false.into(), true.into()],
        Type::Int32 | Type::Int64 | Type::Double => [1.into(), 2.into()],
        Type::Bytes => ["YQ==".into(), "Yg==".into()],
        Type::Message(message) => match message.full_name() {
            "k8s.meta.v1.Quantity" | "k8s.meta.v1.IntOrString" => ["1".into(), "2".into()],
            "k8s.meta.v1.Time" => ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"].map(Value::from),
            "k8s.meta.v1.RawExtension" => [json!({ "a": 1 }), json!({ "a": 2 })],
            name => objects(name, depth),
        },
        _ => ["a".into(), "b".into()],
    }
}

/// Returns two objects of a message that differ in their fields of simple types, or in others if there are none.
fn objects(message: &str, depth: usize) -> [Value; 2] {
    let mut objects = [json!({}), json!({})];
    let Some(message) = rules::message(message).filter(|_| depth > 0) else {
        return objects;
    };
    let is_simple = |field: &&Field| field.message().is_none();
    let has_simple = message.fields().any(|field| is_simple(&field));
    for field in message
        .fields()
        .filter(|field| is_simple(field) == has_simple)
    {
        for (object, value) in objects.iter_mut().zip(values_to(field, depth - 1)) {
            object[field.descriptor.json_name()] = value;
        }
    }
    objects
}
