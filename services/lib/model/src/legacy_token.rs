//! Tokens of ServiceAccounts that are kept in Secrets and do not expire (upstream: legacy tokens).
//!
//! A Secret of the type [`TYPE`] names its account; the server puts the token into it. Those that the account lists
//! among its own Secrets count as generated, and are cleaned up once they are unused; others were made by hand, and
//! stay.
//!
//! The server records the day of the last use as a label, since the day in the ConfigMap [`TRACKING`]. A token with the
//! label [`INVALID_SINCE`] is refused.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use setpoint_proto::core::{ConfigMap, Secret, ServiceAccount};

/// The type of the Secrets.
pub const TYPE: &str = "kubernetes.io/service-account-token";
/// The annotation with the name of the account.
pub const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
/// The annotation with the uid of the account.
pub const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// The keys of the data of a Secret.
pub const TOKEN: &str = "token";
/// See [`TOKEN`]; the CA bundle by which the server is verified.
pub const CA: &str = "ca.crt";
/// See [`TOKEN`]; the namespace of the account.
pub const NAMESPACE: &str = "namespace";
/// The label with the day on which the token was used last.
pub const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// The label with the day since which the token is refused.
pub const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
/// The namespace of the ConfigMap [`TRACKING`].
pub const TRACKING_NAMESPACE: &str = "kube-system";
/// The ConfigMap with the day since which uses are recorded.
pub const TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";
/// The key of this day.
pub const SINCE: &str = "since";

/// Returns the day of a text such as `2026-11-28`; `None` if it has another form.
pub fn day(text: &str) -> Option<Date> {
    let date: Date = text.parse().ok()?;
    (date.to_string() == text).then_some(date)
}

/// Returns the day of a time in UTC.
pub fn day_of(time: Timestamp) -> Date {
    time.to_zoned(TimeZone::UTC).date()
}

/// Returns the day since which uses are recorded; `None` if the ConfigMap does not say so.
pub fn tracked_since(map: &ConfigMap) -> Option<Date> {
    day(map.data.get(SINCE)?)
}

/// Returns the name of the account of a Secret; `None` if it is of another type or names none.
pub fn account_name(secret: &Secret) -> Option<&str> {
    let name = secret.metadata.annotations.get(ACCOUNT_NAME)?;
    (secret.r#type == TYPE && !name.is_empty()).then_some(name)
}

/// Returns whether a Secret is for a token of this account. One without a uid is for any account of the name.
pub fn is_of(secret: &Secret, account: &ServiceAccount) -> bool {
    let (of, account) = (&secret.metadata, &account.metadata);
    let uid = of.annotations.get(ACCOUNT_UID);
    account_name(secret) == Some(account.name.as_str())
        && of.namespace == account.namespace
        && uid.is_none_or(|uid| uid.is_empty() || *uid == account.uid)
}

/// Returns whether an account lists a Secret among its own.
pub fn is_listed(account: &ServiceAccount, secret: &str) -> bool {
    account.secrets.iter().any(|listed| listed.name == secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_one_form() {
        assert_eq!(day("2026-11-08"), Some(Date::constant(2026, 11, 8)));
        for other in [
            "",
            "2026-11-8",
            "20261108",
            "2026-11-08T00:00:00",
            "2026-13-08",
            "today",
        ] {
            assert_eq!(day(other), None, "{other}");
        }
        let late = "2026-11-08T23:59:59Z".parse().unwrap();
        assert_eq!(day_of(late).to_string(), "2026-11-08");
    }

    #[test]
    fn a_secret_is_of_the_account_that_its_annotations_name() {
        let mut account = ServiceAccount::default();
        account.metadata.name = "robot".into();
        account.metadata.uid = "1".into();
        let secret = |kind: &str, annotations: &[(&str, &str)]| {
            let mut secret = Secret {
                r#type: kind.into(),
                ..Secret::default()
            };
            let annotations = annotations.iter().copied();
            let annotations = annotations.map(|(key, value)| (key.into(), value.into()));
            secret.metadata.annotations.extend(annotations);
            secret
        };
        for (kind, annotations, expected) in [
            (TYPE, &[(ACCOUNT_NAME, "robot")][..], true),
            (TYPE, &[(ACCOUNT_NAME, "robot"), (ACCOUNT_UID, "1")], true),
            (TYPE, &[(ACCOUNT_NAME, "robot"), (ACCOUNT_UID, "")], true),
            (TYPE, &[(ACCOUNT_NAME, "robot"), (ACCOUNT_UID, "2")], false),
            (TYPE, &[(ACCOUNT_NAME, "other")], false),
            (TYPE, &[], false),
            ("Opaque", &[(ACCOUNT_NAME, "robot")], false),
        ] {
            let secret = secret(kind, annotations);
            assert_eq!(is_of(&secret, &account), expected, "{kind} {annotations:?}");
        }
    }
}
