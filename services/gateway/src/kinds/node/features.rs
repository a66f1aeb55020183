//! Validation of the features that an agent declares.

use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;

const LENGTH_MAX: usize = 253;

/// Finds invalid names, duplicates, and names that are not in alphabetical order.
pub(super) fn validate(features: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut last: Option<&String> = None;
    for (index, feature) in features.iter().enumerate() {
        let path = path.index(index);
        if last == Some(feature) {
            errors.duplicate(&path, feature);
        } else if last > Some(feature) {
            errors.invalid(&path, feature, "list must be sorted alphabetically");
        }
        last = Some(feature);
        if feature.len() > LENGTH_MAX {
            let rule = format!("must be no more than {LENGTH_MAX} characters");
            refuse(feature, &rule, &path, errors);
        } else if !is_feature(feature) {
            refuse(feature, FORM, &path, errors);
        }
    }
}

const FORM: &str = "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes";

fn refuse(feature: &str, rule: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.invalid(
        path,
        feature,
        format!("invalid feature name {feature:?}: {rule}"),
    );
}

fn is_feature(name: &str) -> bool {
    let plain = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.bytes().all(|letter| letter.is_ascii_alphanumeric())
    };
    name.starts_with(|first: char| first.is_ascii_uppercase()) && name.split('/').all(plain)
}
