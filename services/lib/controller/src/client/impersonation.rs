//! The headers by which a call is one of another user.

use tonic::metadata::{Ascii, MetadataMap, MetadataValue};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";

/// A user whom a client acts as.
#[derive(Debug)]
pub(super) struct Impersonation {
    user: MetadataValue<Ascii>,
    groups: Vec<MetadataValue<Ascii>>,
}

impl Impersonation {
    /// # Panics
    /// If a name is not ASCII.
    pub(super) fn new(user: &str, groups: &[&str]) -> Self {
        let value = |name: &str| name.parse().expect("names of users and groups are ASCII");
        Self {
            user: value(user),
            groups: groups.iter().map(|name| value(name)).collect(),
        }
    }

    /// Adds the headers to those of a call.
    pub(super) fn add_to(&self, headers: &mut MetadataMap) {
        headers.insert(USER, self.user.clone());
        for group in &self.groups {
            headers.append(GROUP, group.clone());
        }
    }
}
