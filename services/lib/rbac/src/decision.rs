//! Decisions, and the texts that explain them.

use std::fmt::{self, Write as _};

use setpoint_proto::rbac::Subject;

use super::index::{Binding, Index};
use super::request::Request;

/// A decision about a request.
#[derive(Clone, Copy)]
pub struct Decision<'a> {
    pub(crate) index: &'a Index,
    pub(crate) request: Request<'a>,
    pub(crate) allowed: bool,
}

impl Decision<'_> {
    /// Returns whether the request is allowed.
    pub const fn allowed(&self) -> bool {
        self.allowed
    }

    /// Returns the binding that allows the request or, if it is denied, the roles of the user that do not exist. May be
    /// empty.
    pub fn reason(&self) -> String {
        let mut text = String::new();
        if let Some((binding, subject)) = self.grant() {
            let described = describe(&mut text, binding, subject);
            described.expect("a String takes any text");
            return text;
        }
        let Request { user, .. } = self.request;
        let rules = self.index.rules_for(user, self.request.namespace());
        match rules.errors() {
            Some(errors) => format!("RBAC: {errors}"),
            None => text,
        }
    }

    fn grant(&self) -> Option<(&Binding, &Subject)> {
        self.allowed
            .then(|| self.index.grant(&self.request))
            .flatten()
    }
}

impl super::Rules<'_> {
    /// Returns the text about the roles that do not exist; `None` if all do.
    pub fn errors(&self) -> Option<String> {
        let texts: Vec<_> = self.missing.iter().map(ToString::to_string).collect();
        match texts.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        }
    }
}

fn describe(to: &mut String, binding: &Binding, subject: &Subject) -> fmt::Result {
    let (role, namespace) = (&binding.role, binding.namespace.as_str());
    match namespace {
        "" => write!(to, "RBAC: allowed by ClusterRoleBinding {:?}", binding.name)?,
        _ => {
            let name = format!("{}/{namespace}", binding.name);
            write!(to, "RBAC: allowed by RoleBinding {name:?}")?;
        }
    }
    write!(to, " of {} {:?} to {} ", role.kind, role.name, subject.kind)?;
    let of_account = match (subject.kind.as_str(), subject.namespace.as_str()) {
        ("ServiceAccount", "") => Some(namespace),
        ("ServiceAccount", own) => Some(own),
        _ => None,
    };
    match of_account {
        Some(namespace) => write!(to, "{:?}", format!("{}/{namespace}", subject.name)),
        None => write!(to, "{:?}", subject.name),
    }
}
