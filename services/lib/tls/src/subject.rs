//! Object identifiers of certificates.

/// The common name of a subject: the name of the user.
pub(crate) const COMMON_NAME: &[u64] = &[2, 5, 4, 3];
/// An organization of a subject: a group of the user.
pub(crate) const ORGANIZATION: &[u64] = &[2, 5, 4, 10];
/// Kubernetes' attribute of a subject: the UID of the user.
pub(crate) const USER_ID: &[u64] = &[1, 3, 6, 1, 4, 1, 57_683, 2];
