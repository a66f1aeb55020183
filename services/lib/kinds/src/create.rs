//! The preparation and validation of a new object.

use setpoint_codec::Object;
use setpoint_proto::ApiError;

use crate::validation::field_errors::FieldErrors;
use crate::validation::metadata;
use crate::validation::warnings::Warnings;
use crate::{Target, versions};

/// Prepares a new object, whose metadata [`metadata::prepare_create`] has prepared: sets defaults, and removes what a
/// creator may not set.
pub fn prepare(target: &Target, object: &mut dyn Object) {
    let rules = crate::of(target.kind);
    rules.fill_defaults(object);
    rules.prepare_create(object);
}

/// Validates a prepared object, and begins its generation.
///
/// # Errors
/// `Invalid` with all that is wrong.
pub fn validate(target: &Target, object: &mut dyn Object) -> Result<(), ApiError> {
    let rules = crate::of(target.kind);
    let mut errors = FieldErrors::default();
    let check_name = |name: &str| rules.check_name(name);
    metadata::validate(target.kind, object.meta(), check_name, &mut errors);
    rules.validate(object, &mut errors);
    rules.validate_create(object, &mut errors);
    versions::validate(target.served, object, None, &mut errors);
    errors.into_result(target.served, &target.name)?;
    object.meta_mut().generation = i64::from(rules.counts_generations());
    Ok(())
}

/// Returns the warnings about a valid object.
pub fn warnings(target: &Target, object: &dyn Object) -> Vec<String> {
    let mut warnings = Warnings::default();
    crate::of(target.kind).warn(object, None, &mut warnings);
    warnings.into_texts()
}
