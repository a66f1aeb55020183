//! Validation that several kinds share; that of one kind is in `kinds/`.

pub(crate) mod field_errors;
pub(crate) mod field_path;
pub(crate) mod ip;
pub(crate) mod label_selector;
pub(crate) mod metadata;
pub(crate) mod podspec;
