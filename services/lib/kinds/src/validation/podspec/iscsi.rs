//! Validation of iSCSI volumes and their qualified names.

use setpoint_proto::core::{IscsiVolumeSource, Volume};

use super::remote;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// The largest total length of the volume name and the portal.
const PORTAL_MAX: usize = 64;

/// Validates an iSCSI volume.
pub fn validate(volume: &IscsiVolumeSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.not_empty(&path.field("targetPortal"), &volume.target_portal);
    let at = path.field("iqn");
    match volume.iqn.as_str() {
        "" => errors.required(&at, ""),
        name => validate_name(name, &at, errors),
    }
    remote::validate_lun(volume.lun, path, errors);
    let authenticated = volume.chap_auth_discovery || volume.chap_auth_session;
    if authenticated && volume.secret_ref.is_none() {
        errors.required(&path.field("secretRef"), "");
    }
    if let Some(name) = &volume.initiator_name {
        validate_name(name, &path.field("initiatorname"), errors);
    }
}

fn validate_name(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let right = match name.get(..3) {
        Some("iqn") => name
            .split_once("iqn.")
            .is_some_and(|(_, rest)| is_qualified(rest)),
        Some("eui") => is_coded(name, 16),
        Some("naa") => is_coded(name, 32),
        _ => {
            let detail = "must be valid format starting with iqn, eui, or naa";
            return errors.invalid(path, name, detail);
        }
    };
    if !right {
        errors.invalid(path, name, "must be valid format");
    }
}

/// Returns whether the text is a month, a domain and a name, as in `2015-02.example.com:disk`.
fn is_qualified(rest: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let (month, rest) = rest.split_once('.').unwrap_or_default();
    let (domain, name) = rest.split_once(':').unwrap_or_default();
    let month = month.bytes().enumerate().all(|(at, byte)| match at {
        4 => byte == b'-',
        _ => byte.is_ascii_digit(),
    }) && month.len() == 7;
    let odd = |letter: char| ",;*&$|\t\n\u{c}\r ".contains(letter);
    month
        && !domain.is_empty()
        && domain.bytes().all(plain)
        && !name.is_empty()
        && !name.contains(odd)
}

/// Returns whether the text is a prefix of three letters, a separator, and `length` letters and digits.
fn is_coded(name: &str, length: usize) -> bool {
    let mut rest = name.chars().skip(4);
    let plain = |letter: char| letter.is_ascii_alphanumeric();
    name.chars().count() == length.saturating_add(4) && rest.all(plain)
}

/// Validates the length of the initiator name, which is made of those of the volume and the portal.
pub fn validate_initiator(volume: &Volume, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some(source) = &volume.volume_source.iscsi else {
        return;
    };
    let length = format!("{}:{}", volume.name, source.target_portal).len();
    if source.initiator_name.is_some() && length > PORTAL_MAX {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
            characters if iscsi.initiatorName is specified.";
        errors.invalid(&path.field("name"), &volume.name, detail);
    }
}
