//! Validation of container ports.

use std::collections::BTreeSet;

use setpoint_proto::core::ContainerPort;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// The protocols of ports.
pub const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// Validates the ports of a container.
pub fn validate(ports: &[ContainerPort], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        if !port.name.is_empty() {
            let name = path.field("name");
            let wrong = check_name(&port.name);
            if wrong.is_empty() && !seen.insert(port.name.as_str()) {
                errors.duplicate(&name, &port.name);
            }
            errors.all_invalid(&name, &port.name, wrong);
        }
        match port.container_port {
            0 => errors.required(&path.field("containerPort"), ""),
            number => validate_number(number, &path.field("containerPort"), errors),
        }
        if port.host_port != 0 {
            validate_number(port.host_port, &path.field("hostPort"), errors);
        }
        errors.one_of_or_empty(&path.field("protocol"), &port.protocol, PROTOCOLS);
    }
}

/// Validates a port number.
pub fn validate_number(number: i32, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if !(1..=65535).contains(&number) {
        errors.invalid(path, number, "must be between 1 and 65535, inclusive");
    }
}

/// Returns the errors of the name of a port (RFC 6335).
pub fn check_name(name: &str) -> Vec<String> {
    let wrong = |wrong: bool, what: &str| wrong.then(|| what.to_owned());
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    [
        wrong(name.len() > 15, "must be no more than 15 characters"),
        wrong(
            name.is_empty() || !name.bytes().all(plain),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        wrong(
            !name.bytes().any(|byte| byte.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        wrong(name.contains("--"), "must not contain consecutive hyphens"),
        wrong(
            name.starts_with('-') || name.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(name: &str, number: i32) -> String {
        let port = ContainerPort {
            name: name.into(),
            container_port: number,
            ..Default::default()
        };
        let mut errors = FieldErrors::default();
        validate(
            &[port.clone(), port],
            &FieldPath::root("ports"),
            &mut errors,
        );
        errors.to_string()
    }

    #[test]
    fn port_numbers_are_in_range() {
        assert_eq!(complaints("", 80), "[]");
        assert!(complaints("", 0).starts_with("[ports[0].containerPort: Required value"));
        assert!(complaints("", 65_536).contains("must be between 1 and 65535, inclusive"));
        for right in [1, 2, 1_000, 16_384, 32_768, 65_535] {
            assert_eq!(complaints("", right), "[]");
        }
        for wrong in [-1, 100_000] {
            assert_ne!(complaints("", wrong), "[]");
        }
    }

    #[test]
    fn port_names_follow_rfc_6335() {
        for right in [
            "telnet",
            "re-mail-ck",
            "pop3",
            "a",
            "a-1",
            "1-a",
            "1-a-2-b-3",
        ] {
            assert!(check_name(right).is_empty(), "{right}");
        }
        for wrong in [
            "longerthan15characters",
            "",
            "aaaaaaaaaaaaaaaa",
            "12345",
            "1-2-3-4",
            "-begin",
            "end-",
            "two--hyphens",
            "whois++",
        ] {
            assert!(!check_name(wrong).is_empty(), "{wrong}");
        }
    }

    #[test]
    fn port_names_are_unique() {
        assert_eq!(
            complaints("http", 80),
            r#"ports[1].name: Duplicate value: "http""#
        );
        assert_eq!(check_name("no-good-name-for-a-port").len(), 1);
        assert_eq!(check_name("80").len(), 1);
        assert_eq!(check_name("-a").len(), 1);
    }
}
