//! Impersonation: a request as another user, with the permissions of that, if its own user may do so.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use setpoint_kinds::Identity;
use setpoint_kinds::identity::{AUTHENTICATED, UNAUTHENTICATED};
use setpoint_proto::{ApiError, Reason};

use super::authorization::Authorizer;
use super::service_account;
use super::{Attributes, Resource};

/// The start of the names of all headers of impersonation.
const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

/// The group of the API of uids and attributes of users.
const AUTHENTICATION: &str = "authentication.k8s.io";
const ACCOUNT: &str = "system:serviceaccount:";

/// Returns the user that a request acts as: its own one or, if its headers say so and that may, another.
///
/// # Errors
/// `Forbidden` if the user may not impersonate one of the values, each of which is a question of its own.
pub(super) async fn resolve(
    authorizer: &Authorizer,
    user: Identity,
    headers: &HeaderMap,
) -> Result<Identity, ApiError> {
    let Some(wanted) = wanted(headers)? else {
        return Ok(user);
    };
    for question in questions(&wanted) {
        authorizer.authorize(&user, &question).await?;
    }
    Ok(complete(wanted))
}

/// Returns the user as the headers name it.
fn wanted(headers: &HeaderMap) -> Result<Option<Identity>, ApiError> {
    let mut names = headers.keys().map(HeaderName::as_str);
    if !names.any(|name| name.starts_with(PREFIX)) {
        return Ok(None);
    }
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    let one = |name: &str| headers.get(name).and_then(text).unwrap_or_default();
    let groups: Vec<String> = headers.get_all(GROUP).iter().filter_map(text).collect();
    let mut extra = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
            extra.entry(key).or_default().extend(text(value));
        }
    }
    let (name, uid) = (one(USER), one(UID));
    if name.is_empty() {
        let alone = groups.is_empty() && extra.is_empty() && uid.is_empty();
        let message = format!(
            "Internal Server Error: requested [{}] without impersonating a user",
            groups.join(" ")
        );
        return match alone {
            true => Ok(None),
            false => Err(ApiError::new(Reason::InternalError, message)),
        };
    }
    Ok(Some(Identity {
        name,
        uid,
        groups,
        extra,
    }))
}

/// Returns what somebody must be allowed who acts as a user: the verb `impersonate` on its name, its uid, each group
/// and each attribute.
fn questions(wanted: &Identity) -> Vec<Attributes> {
    let (namespace, resource, name) = match account(&wanted.name) {
        Some((namespace, name)) => (namespace, "serviceaccounts", name),
        None => ("", "users", wanted.name.as_str()),
    };
    let mut asked = vec![Resource {
        namespace: namespace.into(),
        ..named(resource, name)
    }];
    if !wanted.uid.is_empty() {
        asked.push(Resource {
            group: AUTHENTICATION.into(),
            ..named("uids", &wanted.uid)
        });
    }
    asked.extend(wanted.groups.iter().map(|group| named("groups", group)));
    for (key, values) in &wanted.extra {
        asked.extend(values.iter().map(|value| Resource {
            group: AUTHENTICATION.into(),
            subresource: key.clone(),
            ..named("userextras", value)
        }));
    }
    let asked = asked.into_iter();
    asked
        .map(|resource| Attributes::of_resource("impersonate", resource))
        .collect()
}

fn named(resource: &str, name: &str) -> Resource {
    Resource {
        version: "v1".into(),
        resource: resource.into(),
        name: name.into(),
        ..Resource::default()
    }
}

/// Returns the namespace and the name of the ServiceAccount that a user is.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT)?.split_once(':')?;
    let is_one = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    is_one.then_some((namespace, name))
}

/// Returns the user with the groups that every such user has.
fn complete(mut user: Identity) -> Identity {
    if let Some((namespace, _)) = account(&user.name)
        && user.groups.is_empty()
    {
        user.groups = service_account::groups(namespace);
    }
    let has = |group: &str| user.groups.iter().any(|one| one == group);
    let known = match user.name.as_str() {
        "system:anonymous" => UNAUTHENTICATED,
        _ => AUTHENTICATED,
    };
    if !has(known) && !has(UNAUTHENTICATED) {
        user.groups.push(known.into());
    }
    user
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn user(pairs: &[(&'static str, &'static str)]) -> Identity {
        complete(wanted(&headers(pairs)).unwrap().unwrap())
    }

    #[test]
    fn an_impersonated_user_has_the_named_groups_and_attributes() {
        let jane = user(&[
            (USER, "jane"),
            (GROUP, "a"),
            (GROUP, "b"),
            ("impersonate-extra-acme.com%2fscope", "dev"),
        ]);
        assert_eq!(jane.groups, ["a", "b", AUTHENTICATED]);
        assert_eq!(jane.extra["acme.com/scope"], ["dev"]);
        let account = user(&[(USER, "system:serviceaccount:ns:web")]);
        assert_eq!(account.groups[1], "system:serviceaccounts:ns");
        let nobody = user(&[(USER, "jane"), (GROUP, UNAUTHENTICATED)]);
        assert_eq!(nobody.groups, [UNAUTHENTICATED]);
        let anonymous = user(&[(USER, "system:anonymous")]);
        assert_eq!(anonymous.groups, [UNAUTHENTICATED]);
        assert!(wanted(&headers(&[(GROUP, "a")])).is_err());
        assert_eq!(wanted(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn each_value_is_a_question_of_its_own() {
        let asked = |pairs| {
            let wanted = wanted(&headers(pairs)).unwrap().unwrap();
            let resources = questions(&wanted).into_iter();
            let resources = resources.filter_map(|attributes| attributes.resource);
            let texts = resources.map(|of| {
                format!(
                    "{}/{}/{} {} {}",
                    of.group, of.resource, of.subresource, of.namespace, of.name
                )
            });
            texts.collect::<Vec<_>>()
        };
        let all = [
            (USER, "jane"),
            (UID, "7"),
            (GROUP, "a"),
            (GROUP, "b"),
            ("impersonate-extra-scope", "dev"),
        ];
        let expected = [
            "/users/  jane",
            "authentication.k8s.io/uids/  7",
            "/groups/  a",
            "/groups/  b",
            "authentication.k8s.io/userextras/scope  dev",
        ];
        assert_eq!(asked(&all), expected);
        let account = asked(&[(USER, "system:serviceaccount:ns:web")]);
        assert_eq!(account, ["/serviceaccounts/ ns web"]);
        let others = asked(&[(USER, "system:serviceaccount:ns:web:x")]);
        assert_eq!(others, ["/users/  system:serviceaccount:ns:web:x"]);
    }
}
