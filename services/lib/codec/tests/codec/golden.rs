//! Compares JSON and protobuf with golden files written by Kubernetes' serializers.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::path::{Path, PathBuf};
use std::{env, fs};

use bytes::Bytes;
use serde_json::Value;
use setpoint_codec::fields::{self, Edit, FieldSet, Managers, document};
use setpoint_codec::{Kind, Object, envelope, kinds, strict};
use setpoint_proto::meta::Time;

/// An object as JSON and in its envelope.
struct Golden {
    name: String,
    json: Vec<u8>,
    envelope: Bytes,
    /// The JSON after a round trip, if the release of the object had fields that the current one has not.
    after_round_trip: Option<Vec<u8>>,
}

impl Golden {
    fn read(path: &Path) -> Self {
        let file = |extension: &str| fs::read(path.with_extension(extension));
        Self {
            name: path.display().to_string(),
            json: file("json").unwrap(),
            envelope: file("pb").unwrap().into(),
            after_round_trip: file("after_roundtrip.json").ok(),
        }
    }

    fn kind(&self) -> Option<&'static Kind> {
        let document: Value = serde_json::from_slice(&self.json).unwrap();
        let text = |key: &str| document[key].as_str();
        // Events of watches and lists of versions are not objects of the API.
        kinds().by_kind(text("apiVersion")?, text("kind")?)
    }
}

#[test]
fn json_and_protobuf_of_every_modelled_kind_equal_those_of_kubernetes() {
    let Some(folder) = folder() else {
        println!("SKIPPED: no golden files; set SETPOINT_GOLDEN to their folder");
        return;
    };
    let mut not_modelled = Vec::new();
    let mut checked = 0;
    for golden in read(&folder) {
        match golden.kind() {
            Some(kind) => {
                check(&golden, kind);
                checked += 1;
            }
            None => not_modelled.push(golden.name),
        }
    }
    println!(
        "{checked} objects checked; not modelled: {}",
        not_modelled.join(", ")
    );
    assert!(checked > 0, "none of the golden kinds is modelled");
}

/// Returns the folder of golden files, which may have a folder for each release.
fn folder() -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/golden");
    let folder = env::var_os("SETPOINT_GOLDEN").map_or_else(|| default.into(), PathBuf::from);
    folder.is_dir().then_some(folder)
}

fn read(folder: &Path) -> Vec<Golden> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let is_object = |path: &Path| {
        let name = path.to_string_lossy();
        name.ends_with(".json") && !name.ends_with(".after_roundtrip.json")
    };
    let golden = |path: &PathBuf| match path.is_dir() {
        true => read(path),
        false if is_object(path) => vec![Golden::read(path)],
        false => Vec::new(),
    };
    paths.iter().flat_map(golden).collect()
}

/// Adds kind and version to the claims of a StatefulSet. The files do not have them, but each response of
/// kube-apiserver has.
fn type_claims(document: &mut Value) {
    let claims = document.pointer_mut("/spec/volumeClaimTemplates");
    for claim in claims.and_then(Value::as_array_mut).into_iter().flatten() {
        claim["kind"] = "PersistentVolumeClaim".into();
        claim["apiVersion"] = "v1".into();
    }
}

fn check(golden: &Golden, kind: &'static Kind) {
    let name = &golden.name;
    let opened = envelope::read(&golden.envelope).unwrap();
    assert_eq!(
        (opened.api_version.as_str(), opened.kind.as_str()),
        (kind.api_version().as_str(), kind.kind.as_str())
    );

    let stored = kind.decode(&opened.raw).unwrap();
    let kept = golden.after_round_trip.as_ref().unwrap_or(&golden.json);
    let mut expected: Value = serde_json::from_slice(kept).unwrap();
    type_claims(&mut expected);
    let written: Value = serde_json::from_slice(&stored.to_json()).unwrap();
    assert_eq!(written, expected, "{name}: protobuf to JSON");

    let parsed = kind.from_json(&golden.json).unwrap();
    assert_eq!(parsed.encode(), stored.encode(), "{name}: JSON to protobuf");
    let again = kind.decode(&parsed.encode()).unwrap();
    assert_eq!(
        again.to_json(),
        parsed.to_json(),
        "{name}: protobuf and back"
    );

    let sealed = envelope::write(&kind.api_version(), &kind.kind, &parsed.encode(), None);
    let reopened = envelope::read(&sealed).unwrap();
    let restored = kind.decode(&reopened.raw).unwrap();
    assert_eq!(
        restored.to_json(),
        stored.to_json(),
        "{name}: envelope and back"
    );
    assert_eq!(
        strict::unknown_fields(kind, kept),
        Vec::<String>::new(),
        "{name}: strict"
    );
    if kind.is_stored() {
        check_created(parsed, name);
    }
}

/// Checks that the fields of a new object are those of a comparison with an object without any.
fn check_created(mut object: Box<dyn Object>, name: &str) {
    object.meta_mut().managed_fields.clear();
    let reset = FieldSet::default();
    let edit = Edit {
        kind: object.kind(),
        manager: "one",
        subresource: "",
        now: Time::default(),
        reset: &reset,
    };
    let mut compared = Managers::default();
    compared.create(&edit, &document(&*object)).unwrap();
    fields::create(&edit, &mut *object);
    let recorded = &object.meta().managed_fields;
    assert_eq!(*recorded, compared.encode(), "{name}: managed fields");
}
