//! The permissions that a user needs to act as another.

use std::collections::BTreeMap;

use setpoint_kinds::Identity;
use setpoint_kinds::identity::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED};
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_model::users::{ADMINISTRATORS, NODES};
use setpoint_proto::ApiError;

use super::mode::{Mode, account, node};
use crate::request::authorization::{Authorizer, forbidden};
use crate::request::service_account;
use crate::request::{Attributes, Resource};

/// The group of the API of uids and attributes of users.
const AUTHENTICATION: &str = "authentication.k8s.io";
/// The number of values from which on one question about all of them is asked first.
const MANY: usize = 4;

/// The questions of a mode about a user.
pub(super) struct Checks<'a> {
    pub(super) mode: Mode,
    pub(super) authorizer: &'a Authorizer,
    /// The user of the request, who wants to act as another.
    pub(super) user: &'a Identity,
}

impl Checks<'_> {
    /// Returns `wanted` with the groups that every such user has, if that may be acted as. Each value is a question of
    /// its own.
    ///
    /// # Errors
    /// `Forbidden` if it may not.
    pub(super) async fn run(
        &self,
        wanted: &Identity,
        asked: &[Attributes],
    ) -> Result<Identity, ApiError> {
        for asked in asked {
            if let Some(verb) = self.mode.verb_on(&asked.verb) {
                let on = Attributes {
                    verb: verb.into(),
                    ..asked.clone()
                };
                self.authorizer.check(self.user, &on).await?;
            }
        }
        self.may(self.name(&wanted.name)).await?;
        if !wanted.uid.is_empty() {
            self.may(of_users("uids", &wanted.uid)).await?;
        }
        self.groups(&wanted.groups).await?;
        self.extra(&wanted.extra).await?;
        Ok(self.complete(wanted.clone()))
    }

    fn is_constrained(&self) -> bool {
        self.mode != Mode::Legacy
    }

    fn attributes(&self, resource: Resource) -> Attributes {
        Attributes::of_resource(self.mode.verb(), resource)
    }

    async fn may(&self, resource: Resource) -> Result<(), ApiError> {
        let asked = self.attributes(resource);
        self.authorizer.check(self.user, &asked).await
    }

    fn refuse(&self, resource: Resource, why: &str) -> ApiError {
        forbidden(self.user, &self.attributes(resource), why)
    }

    /// Returns the resource of names and groups: of the core group in the oldest mode.
    fn named(&self, resource: &str, name: &str) -> Resource {
        let named = of_users(resource, name);
        match self.is_constrained() {
            true => named,
            false => Resource {
                group: String::new(),
                ..named
            },
        }
    }

    fn name(&self, wanted: &str) -> Resource {
        if let Some((namespace, name)) = account(wanted) {
            let namespace = namespace.to_owned();
            return Resource {
                namespace,
                ..self.named("serviceaccounts", name)
            };
        }
        match node(wanted) {
            // The question is one about all nodes, which the account may run on.
            Some(_) if self.mode == Mode::AssociatedNode => self.named("nodes", "*"),
            Some(name) if self.is_constrained() => self.named("nodes", name),
            _ => self.named("users", wanted),
        }
    }

    async fn groups(&self, groups: &[String]) -> Result<(), ApiError> {
        let has = |name: &str| groups.iter().any(|group| group == name);
        if self.is_constrained() && has("") {
            let why = "impersonating the empty string group is not allowed";
            return Err(self.refuse(self.named("groups", ""), why));
        }
        if self.is_constrained() && has(ADMINISTRATORS) {
            let why = "impersonating the system:masters group is not allowed";
            return Err(self.refuse(self.named("groups", ADMINISTRATORS), why));
        }
        if self.is_constrained()
            && groups.len() >= MANY
            && self.may(self.named("groups", "*")).await.is_ok()
        {
            return Ok(());
        }
        for group in groups {
            self.may(self.named("groups", group)).await?;
        }
        Ok(())
    }

    async fn extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Result<(), ApiError> {
        if self.is_constrained() {
            let refuse = |why: String| self.refuse(attribute("", ""), &why);
            validate(extra).map_err(refuse)?;
            let number: usize = extra.values().map(Vec::len).sum();
            if number >= MANY && self.may(attribute("*", "*")).await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.may(attribute(key, value)).await?;
            }
        }
        Ok(())
    }

    /// Adds the groups that every such user has.
    fn complete(&self, mut user: Identity) -> Identity {
        if self.is_constrained() && node(&user.name).is_some() {
            user.groups = vec![NODES.into()];
        }
        if let Some((namespace, _)) = account(&user.name)
            && user.groups.is_empty()
        {
            user.groups = service_account::groups(namespace);
        }
        let has = |group: &str| user.groups.iter().any(|one| one == group);
        let known = match user.name.as_str() {
            ANONYMOUS => UNAUTHENTICATED,
            _ => AUTHENTICATED,
        };
        if !has(known) && !has(UNAUTHENTICATED) {
            user.groups.push(known.into());
        }
        user
    }
}

/// Returns the question of the oldest mode about a user.
pub(super) fn oldest_question(wanted: &str) -> Attributes {
    let users = Resource {
        group: String::new(),
        ..of_users("users", wanted)
    };
    Attributes::of_resource(Mode::Legacy.verb(), users)
}

fn of_users(resource: &str, name: &str) -> Resource {
    Resource {
        group: AUTHENTICATION.into(),
        version: "v1".into(),
        resource: resource.into(),
        name: name.into(),
        ..Resource::default()
    }
}

fn attribute(key: &str, value: &str) -> Resource {
    Resource {
        subresource: key.into(),
        ..of_users("userextras", value)
    }
}

/// Validates the attributes of a user, as far as the constrained modes do.
///
/// # Errors
/// The first problem.
fn validate(extra: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
    for (key, values) in extra {
        if key.is_empty() {
            return Err("impersonating the empty string key in extra is not allowed".into());
        }
        let mut errors = FieldErrors::default();
        let root = FieldPath::root("extra");
        errors.domain_prefixed_path(&root.field("key"), key);
        if errors.count() > 0 {
            return Err(format!(
                "impersonating an invalid key in extra is not allowed: {errors}"
            ));
        }
        if *key != key.to_lowercase() {
            return Err(format!(
                "impersonating a non-lowercase key in extra is not allowed: {key:?}"
            ));
        }
        if values.iter().any(String::is_empty) {
            return Err("impersonating the empty string value in extra is not allowed".into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
