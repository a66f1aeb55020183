//! Validation and defaults that several kinds share; those of one kind are in its file.

pub(crate) mod amount;
pub(crate) mod changes;
pub(crate) mod claim;
pub(crate) mod conditions;
pub mod field_errors;
pub mod field_path;
pub(crate) mod ip;
pub(crate) mod label_selector;
pub mod metadata;
pub mod podspec;
pub mod warnings;

/// Sets a field to its default if it is empty.
pub fn set_default(field: &mut String, value: &str) {
    if field.is_empty() {
        value.clone_into(field);
    }
}
