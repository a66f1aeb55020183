//! Tables of changes of an object, with the errors that validation finds for each: see [`crate::cases`].

use jiff::Timestamp;
use serde_json::Value;
use setpoint_codec::{Object, kinds};
use setpoint_kinds::validation::metadata;
use setpoint_kinds::{Identity, Target, create, update};
use setpoint_model::names;
use setpoint_proto::ApiError;

use crate::cases::{Change, Creation, changed, differs};

/// The namespace of objects that name none.
const NAMESPACE: &str = "default";

/// An object to which changes are applied.
pub struct Base {
    pub resource: &'static str,
    pub object: Value,
}

/// An update of an object.
pub struct UpdatedObject {
    pub target: Target,
    pub old: Box<dyn Object>,
    pub new: Box<dyn Object>,
}

impl Base {
    /// Checks creates, with each of the changes.
    pub fn created(&self, cases: &[Creation]) {
        let wrong = cases.iter().filter_map(|(change, expected)| {
            differs(
                change,
                self.create(&changed(&self.object, change)),
                expected,
            )
        });
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Checks updates with the second change of an object stored with the first.
    pub fn updated(&self, cases: &[Change]) {
        self.replaced("", cases);
    }

    /// Checks updates of the status with the second change, after one with the first.
    pub fn reported(&self, cases: &[Change]) {
        self.replaced("status", cases);
    }

    fn replaced(&self, part: &str, cases: &[Change]) {
        let wrong = cases.iter().filter_map(|(before, change, expected)| {
            let mut stored = self.create(&changed(&self.object, before)).expect(before);
            if !part.is_empty() {
                let first = changed(&stored, before);
                stored = self.update(part, &stored, &first).expect(before);
            }
            let outcome = self.update(part, &stored, &changed(&stored, change));
            differs(&format!("{before} → {change}"), outcome, expected)
        });
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Checks writes of `sent`, with each of the changes, to a subresource of the stored object.
    pub fn written(&self, part: &str, sent: &Value, cases: &[Creation]) {
        let stored = self.create(&self.object).expect("the base is valid");
        let wrong = cases.iter().filter_map(|(change, expected)| {
            let outcome = self.update(part, &stored, &changed(sent, change));
            differs(change, outcome, expected)
        });
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Returns the message of the error of a create with a change; empty if it is accepted.
    pub fn refusal(&self, change: &str) -> String {
        let outcome = self.create(&changed(&self.object, change));
        outcome
            .err()
            .map_or_else(String::new, |error| error.message)
    }

    /// Returns the object as it is stored.
    pub fn create(&self, object: &Value) -> Result<Value, ApiError> {
        let (_, object) = self.created_object(object)?;
        Ok(stored(&*object))
    }

    /// Returns a new object that is valid, and its target.
    pub fn created_object(&self, object: &Value) -> Result<(Target, Box<dyn Object>), ApiError> {
        let mut target = self.target("", "");
        let mut object = decoded(&target, object)?;
        let rules = setpoint_kinds::of(target.kind);
        metadata::prepare_create(object.meta_mut(), &target, Timestamp::now())?;
        let meta = object.meta_mut();
        if meta.name.is_empty() && !meta.generate_name.is_empty() {
            meta.name = names::child(&meta.generate_name, "x7k2p");
        }
        target.name.clone_from(&meta.name);
        rules.fill_defaults(&mut *object);
        rules.set_requester(&mut *object, &Identity::server());
        create::prepare(&target, &mut *object);
        create::validate(&target, &mut *object)?;
        Ok((target, object))
    }

    fn update(&self, part: &str, old: &Value, new: &Value) -> Result<Value, ApiError> {
        let updated = self.updated_object(part, old, new)?;
        Ok(stored(&*updated.new))
    }

    /// Returns an update that is valid.
    pub fn updated_object(
        &self,
        part: &str,
        old: &Value,
        new: &Value,
    ) -> Result<UpdatedObject, ApiError> {
        let name = old["metadata"]["name"].as_str().unwrap();
        let target = self.target(name, part);
        let (old, mut new) = (decoded(&target, old)?, decoded(&target, new)?);
        update::prepare(&target, &*old, &mut *new)?;
        update::validate(&target, &*old, &mut *new)?;
        Ok(UpdatedObject { target, old, new })
    }

    fn target(&self, name: &str, part: &str) -> Target {
        let kind = kinds().by_resource(self.resource).unwrap();
        let namespace = match kind.namespaced {
            true => self.object["metadata"]["namespace"]
                .as_str()
                .unwrap_or(NAMESPACE),
            false => "",
        };
        Target::new(kind, namespace, name, part).unwrap()
    }
}

fn decoded(target: &Target, object: &Value) -> Result<Box<dyn Object>, ApiError> {
    Ok(target.kind.from_json(object.to_string().as_bytes())?)
}

fn stored(object: &dyn Object) -> Value {
    serde_json::from_slice(&object.to_json()).unwrap()
}
