//! The form of a value that a key of a provider has sealed, and its validation in upstream's words.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message as _;

use super::v2::{EncryptedDekSourceType, EncryptedObject};

/// The largest id of a key, and the largest encrypted source of a key, in bytes.
const LARGEST: usize = 1 << 10;
/// The largest size of all annotations in bytes.
const ANNOTATIONS: usize = 32 << 10;

/// Decodes what follows the prefix of the provider.
pub(super) fn decode(sealed: Bytes) -> Result<EncryptedObject, String> {
    let object = EncryptedObject::decode(sealed).map_err(|error| error.to_string())?;
    if object.encrypted_data.is_empty() {
        return Err("encrypted data is empty".to_owned());
    }
    validate(&object)?;
    Ok(object)
}

/// Checks an object, but for its data.
pub(super) fn validate(object: &EncryptedObject) -> Result<(), String> {
    let kind = object.encrypted_dek_source_type;
    if EncryptedDekSourceType::try_from(kind).is_err() {
        return Err(format!("unknown encryptedDEKSourceType: {kind}"));
    }
    let source = object.encrypted_dek_source.len();
    let problem = match source {
        0 => Some("encrypted DEK source is empty".to_owned()),
        LARGEST.. if source > LARGEST => Some(format!(
            "encrypted DEK source is {source} bytes, which exceeds the max size of {LARGEST}"
        )),
        _ => None,
    };
    if let Some(problem) = problem {
        return Err(format!(
            "failed to validate encrypted DEK source: {problem}"
        ));
    }
    validate_key_id(&object.key_id)
        .map_err(|error| format!("failed to validate key id: {error}"))?;
    validate_annotations(&object.annotations)
        .map_err(|error| format!("failed to validate annotations: {error}"))
}

/// Checks the id of a key.
pub(super) fn validate_key_id(id: &str) -> Result<(), String> {
    match id.len() {
        0 => Err("keyID is empty".to_owned()),
        len if len > LARGEST => Err(format!(
            "keyID is {len} bytes, which exceeds the max size of {LARGEST}"
        )),
        _ => Ok(()),
    }
}

fn validate_annotations(annotations: &BTreeMap<String, Bytes>) -> Result<(), String> {
    let total: usize = annotations
        .iter()
        .map(|(name, value)| name.len().saturating_add(value.len()))
        .fold(0, usize::saturating_add);
    if total > ANNOTATIONS {
        return Err(format!(
            "total size of annotations is {total}, which exceeds the max size of {ANNOTATIONS}"
        ));
    }
    match annotations.keys().find(|name| !is_domain(name)) {
        Some(name) => Err(format!(
            "annotations: Invalid value: {name:?}: should be a domain with at least two segments separated by dots"
        )),
        None => Ok(()),
    }
}

/// Returns whether a name is a domain of at least two segments.
fn is_domain(name: &str) -> bool {
    let is_inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_segment = |segment: &str| {
        let allowed = |letter: char| is_inner(letter) || letter == '-';
        (1..=63).contains(&segment.len())
            && segment.chars().all(allowed)
            && segment.starts_with(is_inner)
            && segment.ends_with(is_inner)
    };
    name.len() <= 253 && name.contains('.') && name.split('.').all(is_segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> EncryptedObject {
        EncryptedObject {
            encrypted_data: "data".into(),
            key_id: "1".to_owned(),
            encrypted_dek_source: "source".into(),
            ..Default::default()
        }
    }

    #[test]
    fn an_object_beyond_a_limit_is_refused_with_the_reason() {
        type Change = fn(&mut EncryptedObject);
        let cases: [(Change, &str); 8] = [
            (
                |object| object.encrypted_data.clear(),
                "encrypted data is empty",
            ),
            (
                |object| object.encrypted_dek_source.clear(),
                "failed to validate encrypted DEK source: encrypted DEK source is empty",
            ),
            (
                |object| object.encrypted_dek_source = vec![0; 1025].into(),
                "failed to validate encrypted DEK source: encrypted DEK source is 1025 bytes, which exceeds the max size of 1024",
            ),
            (
                |object| object.key_id.clear(),
                "failed to validate key id: keyID is empty",
            ),
            (
                |object| object.key_id = "1".repeat(1025),
                "failed to validate key id: keyID is 1025 bytes, which exceeds the max size of 1024",
            ),
            (
                |object| object.encrypted_dek_source_type = 7,
                "unknown encryptedDEKSourceType: 7",
            ),
            (
                |object| drop(object.annotations.insert("name".to_owned(), Bytes::new())),
                "failed to validate annotations: annotations: Invalid value: \"name\": should be a domain with at least two segments separated by dots",
            ),
            (
                |object| {
                    drop(
                        object
                            .annotations
                            .insert("a.b".to_owned(), vec![0; 32766].into()),
                    )
                },
                "failed to validate annotations: total size of annotations is 32769, which exceeds the max size of 32768",
            ),
        ];
        for (change, why) in cases {
            let mut changed = object();
            change(&mut changed);
            assert_eq!(decode(changed.encode_to_vec().into()), Err(why.to_owned()));
        }
        let mut largest = object();
        largest.key_id = "1".repeat(1024);
        largest.encrypted_dek_source = vec![0; 1024].into();
        largest
            .annotations
            .insert("a.b".to_owned(), vec![0; 32765].into());
        assert_eq!(decode(largest.encode_to_vec().into()), Ok(largest));
    }
}
