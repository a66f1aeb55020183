//! A comparison of encoded objects finds what one of their documents does, for every kind.

use proptest::prelude::*;
use prost::Message as _;
use prost_reflect::Kind as Type;
use setpoint_proto::core::{Service, ServicePort};

use super::compare::Comparison;
use super::*;
use crate::Object as _;
use crate::fields::encoded::Unclear;
use crate::rules::{self, Field, Message};

/// The depth to which objects are nested. Schemas contain themselves.
const MAX_DEPTH: u8 = 8;

/// Choices, one for each byte.
struct Choices<'a>(std::iter::Cycle<std::slice::Iter<'a, u8>>);

impl Choices<'_> {
    fn below(&mut self, limit: u8) -> u8 {
        self.0.next().map_or(0, |byte| byte % limit)
    }

    fn of(&mut self, values: &Value) -> Value {
        let values = values.as_array().unwrap();
        let at = self.below(u8::try_from(values.len()).unwrap());
        values[usize::from(at)].clone()
    }
}

/// Returns an object with some of the fields of a message, of which each has one of a few values.
fn any_object(message: &'static Message, choices: &mut Choices<'_>, depth: u8) -> Value {
    let mut object = json!({});
    for field in message.fields() {
        // A deeper object has fewer fields, so that there are some of all forms.
        if depth < MAX_DEPTH && choices.below(2 + depth / 3) == 0 {
            object[field.descriptor.json_name()] = any_value(field, choices, depth);
        }
    }
    object
}

fn any_value(field: &'static Field, choices: &mut Choices<'_>, depth: u8) -> Value {
    if field.descriptor.is_map() {
        let entries = (0..choices.below(3)).map(|_| {
            let key = ["a", "b", "c"][usize::from(choices.below(3))];
            (key.to_owned(), any_element(field, choices, depth))
        });
        return Value::Object(entries.collect());
    }
    match field.descriptor.is_list() {
        true => {
            let entries = 0..choices.below(3);
            entries
                .map(|_| any_element(field, choices, depth))
                .collect()
        }
        false => any_element(field, choices, depth),
    }
}

fn any_element(field: &'static Field, choices: &mut Choices<'_>, depth: u8) -> Value {
    if let Some(message) = field.message() {
        return any_object(message, choices, depth + 1);
    }
    let values = match &field.element {
        Type::String => json!(["", "a", "b"]),
        Type::Bool => json!([false, true]),
        Type::Bytes => json!(["", "YQ==", "Yg=="]),
        Type::Double => json!([0.0, 0.5, 1.5]),
        Type::Message(scalar) => scalars(scalar.name()),
        _ => json!([0, 1, 2]),
    };
    choices.of(&values)
}

/// Returns values of a message that is not an object in JSON.
fn scalars(message: &str) -> Value {
    match message {
        "Time" => json!([null, "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"]),
        "MicroTime" => json!([null, "2026-01-02T03:04:05.01Z", "2026-01-02T03:04:05.02Z"]),
        "Duration" => json!(["0s", "1s", "2s"]),
        "Quantity" => json!(["0", "1", "1500m"]),
        "IntOrString" => json!([0, 1, "a"]),
        "FieldsV1" | "RawExtension" => json!([{}, {"a": 1}, {"b": [1]}]),
        "JSON" => json!([0, {"a": 1}, "a"]),
        "JSONSchemaPropsOrArray" => json!([{}, [{}]]),
        "JSONSchemaPropsOrBool" => json!([true, false, {}]),
        "JSONSchemaPropsOrStringArray" => json!([{}, ["a"]]),
        _ => json!([[], ["a"], ["a", "b"]]),
    }
}

fn sets(comparison: Comparison) -> [FieldSet; 3] {
    [comparison.added, comparison.modified, comparison.removed]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_comparison_of_encoded_objects_is_that_of_their_documents(bytes in prop::collection::vec(any::<u8>(), 997)) {
        let mut choices = Choices(bytes.iter().cycle());
        let (mut all, mut clear) = (0, 0);
        for kind in kinds().iter().filter(|kind| kind.is_stored()) {
            let message = rules::message(kind.message.full_name()).unwrap();
            let mut any = || {
                let document = any_object(message, &mut choices, 0).to_string();
                kind.from_json(document.as_bytes()).unwrap()
            };
            let (old, new) = (any(), any());
            all += 1;
            let encoded = match Comparison::of_encoded(kind, &old.encode(), &new.encode()) {
                Ok(encoded) => encoded,
                Err(Unclear) => continue,
            };
            clear += 1;
            let structure = Structure::of(kind);
            let documents = Comparison::of(structure.shape(), &old.to_document(), &new.to_document());
            prop_assert_eq!(sets(encoded), documents.map(sets).unwrap(), "{}\n{}", old.to_document(), new.to_document());
        }
        prop_assert!(2 * clear > all, "{} of {}", clear, all);
    }
}

/// Returns whether the documents have to be compared.
fn is_unclear(old: &Service, new: &[u8]) -> bool {
    let kind = kinds().by_resource("services").unwrap();
    Comparison::of_encoded(kind, &old.encode_to_vec(), new).is_err()
}

#[test]
fn documents_are_compared_if_encodings_may_mislead() {
    let service = |ignored: &str| {
        let mut port = ServicePort::default();
        port.target_port.str_val = ignored.to_owned();
        let mut service = Service::default();
        service.spec.ports.push(port);
        service
    };
    let (one, two) = (service("a"), service("b"));
    assert_eq!(one.to_document(), two.to_document());
    assert!(is_unclear(&one, &two.encode_to_vec()));
    // A message in two parts, and one that is cut off.
    let raw = one.encode_to_vec();
    assert!(is_unclear(&two, &[raw.clone(), raw.clone()].concat()));
    assert!(is_unclear(&two, &raw[..raw.len() - 1]));
}
