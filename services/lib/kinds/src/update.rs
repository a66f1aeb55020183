//! The preparation and validation of an update: of a whole object, of its status, or of another part.

use setpoint_codec::Object;
use setpoint_proto::ApiError;

use crate::validation::field_errors::FieldErrors;
use crate::validation::metadata;
use crate::validation::warnings::Warnings;
use crate::{Subresource, Target, versions};

/// Prepares the update `new` of `old`: restores what it may not change, and sets defaults.
///
/// # Errors
/// `BadRequest` when its namespace or name is not that of the target.
pub fn prepare(target: &Target, old: &dyn Object, new: &mut dyn Object) -> Result<(), ApiError> {
    let (rules, part) = (crate::of(target.kind), target.subresource);
    metadata::prepare_update(new.meta_mut(), old.meta(), target)?;
    match part {
        Subresource::Approval | Subresource::Finalize => {
            rules.prepare_part_update(new, old, part);
            return Ok(());
        }
        Subresource::Status => rules.prepare_status_update(new, old),
        part if part.is_part_of_spec() => rules.prepare_part_update(new, old, part),
        _ => rules.prepare_update(new, old),
    }
    rules.fill_defaults(new);
    Ok(())
}

/// Validates a prepared update, and counts its generation. Returns warnings about what would be an error if the update
/// changed it.
///
/// # Errors
/// `Invalid` with all that is wrong, and with those warnings.
pub fn validate(
    target: &Target,
    old: &dyn Object,
    new: &mut dyn Object,
) -> Result<Vec<String>, ApiError> {
    let (rules, part) = (crate::of(target.kind), target.subresource);
    let mut errors = FieldErrors::default();
    match part {
        Subresource::Status => {
            metadata::validate_status_update(target.kind, new.meta(), old.meta(), &mut errors);
            rules.validate_status_update(new, old, &mut errors);
        }
        Subresource::Approval | Subresource::Finalize => {
            metadata::validate_status_update(target.kind, new.meta(), old.meta(), &mut errors);
            rules.validate_part_update(new, old, part, &mut errors);
        }
        part if part.is_part_of_spec() => {
            metadata::validate_update(new.meta(), old.meta(), &mut errors);
            rules.validate_part_update(new, old, part, &mut errors);
        }
        _ => validate_whole(target, old, new, &mut errors),
    }
    let forgiven = errors.take_forgiven();
    if let Err(mut error) = errors.into_result(target.served, &new.meta().name) {
        error.warnings.extend(forgiven);
        return Err(error);
    }
    if rules.counts_generations() && changes_intent(part) {
        let changed = rules.intent_changed(new, old);
        new.meta_mut().generation = old.meta().generation + i64::from(changed);
    }
    Ok(forgiven)
}

/// Returns the warnings about a valid update. Writes of parts other than the status have none, as upstream.
pub fn warnings(target: &Target, old: &dyn Object, new: &dyn Object) -> Vec<String> {
    let (rules, mut warnings) = (crate::of(target.kind), Warnings::default());
    match target.subresource {
        Subresource::Status => rules.warn_of_status(new, &mut warnings),
        Subresource::None | Subresource::Scale => rules.warn(new, Some(old), &mut warnings),
        _ => {}
    }
    warnings.into_texts()
}

fn validate_whole(target: &Target, old: &dyn Object, new: &dyn Object, errors: &mut FieldErrors) {
    let rules = crate::of(target.kind);
    let check_name = |name: &str| rules.check_name(name);
    metadata::validate(target.kind, new.meta(), check_name, errors);
    metadata::validate_update(new.meta(), old.meta(), errors);
    rules.validate(new, errors);
    rules.validate_update(new, old, errors);
    versions::validate(target.served, new, Some(old), errors);
}

/// Returns whether an update of a part can change the intent.
fn changes_intent(part: Subresource) -> bool {
    use Subresource::{Approval, Finalize, Status};
    !matches!(part, Status | Approval | Finalize)
}
