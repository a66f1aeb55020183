//! Validation of names, and names of new objects.

use crate::hash::ALPHABET;

/// The maximum length of a DNS label. Names of Pods are host names, too.
const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;
const SUFFIX: usize = 5;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const DOTS: &str = "must not contain dots";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const SUBDOMAIN_UNDERSCORES: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// Returns a suffix of five letters for a random seed, in upstream's alphabet.
pub fn suffix(seed: u64) -> String {
    let base = ALPHABET.len() as u64;
    // Makes the suffixes of consecutive seeds differ in all letters.
    let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    let letters = (0..SUFFIX as u32).map(|position| mixed / base.pow(position) % base);
    letters
        .map(|letter| char::from(ALPHABET[letter as usize]))
        .collect()
}

/// Returns prefix and suffix joined. The prefix, which includes the hyphen, is truncated so that the name is a DNS
/// label.
pub fn child(prefix: &str, suffix: &str) -> String {
    let room = LABEL_MAX.saturating_sub(suffix.len());
    let ends = prefix
        .char_indices()
        .map(|(at, letter)| at + letter.len_utf8());
    let end = ends
        .take_while(|end| *end <= room)
        .last()
        .unwrap_or_default();
    format!("{}{suffix}", &prefix[..end])
}

/// Returns the problems of a name that must be a DNS label; none if it is valid.
pub fn validate_dns_label(name: &str) -> Vec<String> {
    let dotted = name.split('.').all(is_label);
    let rule = if dotted { DOTS } else { LABEL };
    problems(name, LABEL_MAX, is_label(name), rule)
}

/// Returns the problems of a name that must be a DNS label that begins with a letter (RFC 1035), as versions and kinds
/// must.
pub fn validate_dns1035_label(name: &str) -> Vec<String> {
    let starts = name.starts_with(|first: char| first.is_ascii_lowercase());
    problems(name, LABEL_MAX, starts && is_label(name), LABEL_1035)
}

/// Returns the problems of a name that must be a DNS subdomain, as the names of most kinds must.
pub fn validate_dns_subdomain(name: &str) -> Vec<String> {
    subdomain_problems("characters", name)
}

fn subdomain_problems(unit: &str, name: &str) -> Vec<String> {
    let valid = name.split('.').all(is_label);
    problems_in(unit, name, SUBDOMAIN_MAX, valid, SUBDOMAIN)
}

/// As [`validate_dns_subdomain`], but labels may start with an underscore and have underscores where they may have
/// hyphens.
pub fn validate_dns_subdomain_with_underscores(name: &str) -> Vec<String> {
    let valid = name.split('.').all(is_underscored_label);
    problems(name, SUBDOMAIN_MAX, valid, SUBDOMAIN_UNDERSCORES)
}

/// Returns the problems of a name that must be a valid segment of a URL path.
pub fn validate_path_segment(name: &str) -> Vec<String> {
    if [".", ".."].contains(&name) {
        return vec![format!("may not be '{name}'")];
    }
    let forbidden = ["/", "%"].into_iter().filter(|part| name.contains(part));
    forbidden
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// Returns the problems of a key of a ConfigMap or Secret, which may be used as a file name.
pub fn validate_config_key(key: &str) -> Vec<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let valid = !key.is_empty() && key.bytes().all(plain);
    let mut found = problems(key, SUBDOMAIN_MAX, valid, CONFIG_KEY);
    let reserved = match key {
        "." | ".." => Some(format!("must not be '{key}'")),
        key => key
            .starts_with("..")
            .then(|| "must not start with '..'".to_owned()),
    };
    found.extend(reserved);
    found
}

/// Returns the problems of the key of a label or annotation.
pub fn validate_label_key(key: &str) -> Vec<String> {
    validate_qualified_name(key)
}

/// Returns the problems of the value of a label.
pub fn validate_label_value(value: &str) -> Vec<String> {
    let valid = value.is_empty() || is_word(value);
    problems_in("bytes", value, LABEL_MAX, valid, VALUE)
}

/// Returns the problems of a name with an optional prefix, which is a DNS subdomain and a slash.
pub fn validate_qualified_name(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split_once('/') {
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let mut found = match prefix {
        Some("") => vec!["prefix part must be non-empty".to_owned()],
        Some(prefix) => subdomain_problems("bytes", prefix)
            .into_iter()
            .map(|what| format!("prefix part {what}"))
            .collect(),
        None => Vec::new(),
    };
    if name.is_empty() {
        found.push("name part must be non-empty".to_owned());
    }
    let about_name = problems_in("bytes", name, LABEL_MAX, is_word(name), QUALIFIED);
    found.extend(
        about_name
            .into_iter()
            .map(|what| format!("name part {what}")),
    );
    found
}

fn problems(text: &str, max: usize, valid: bool, rule: &str) -> Vec<String> {
    problems_in("characters", text, max, valid, rule)
}

/// Returns the problems of a text whose length upstream's message has in this unit. It is always counted in bytes.
fn problems_in(unit: &str, text: &str, max: usize, valid: bool, rule: &str) -> Vec<String> {
    let too_long = (text.len() > max).then(|| format!("must be no more than {max} {unit}"));
    let malformed = (!valid).then(|| rule.to_owned());
    too_long.into_iter().chain(malformed).collect()
}

fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_framed(text, plain, |byte| plain(byte) || byte == b'-')
}

fn is_underscored_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let rest = text.strip_prefix('_').unwrap_or(text);
    is_framed(rest, plain, |byte| plain(byte) || b"-_".contains(&byte))
}

fn is_word(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    is_framed(text, plain, |byte| plain(byte) || b"-_.".contains(&byte))
}

/// Returns whether the text is not empty, starts and ends with an `edge` letter and has `inner` letters in between.
fn is_framed(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let ends = bytes.first().into_iter().chain(bytes.last());
    !bytes.is_empty() && ends.copied().all(edge) && bytes.iter().copied().all(inner)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn suffixes_of_consecutive_seeds_differ_and_are_valid_labels() {
        for distance in [1, 0x1_0000_0001, 1 << 32, 1 << 48] {
            let suffixes: BTreeSet<_> = (0..2_000).map(|n| suffix(n * distance + 17)).collect();
            assert!(suffixes.len() > 1_998, "{distance}: {}", suffixes.len());
            assert!(
                suffixes
                    .iter()
                    .all(|suffix| suffix.len() == 5 && is_label(suffix))
            );
        }
    }

    #[test]
    fn a_child_name_of_a_long_prefix_is_a_valid_label() {
        assert_eq!(child("web-", "x7k2p"), "web-x7k2p");
        let long = child(&"w".repeat(80), "x7k2p");
        assert_eq!(long.len(), LABEL_MAX);
        assert!(long.ends_with("wx7k2p"));
        assert_eq!(child(&"ö".repeat(40), "x7k2p").len(), LABEL_MAX);
    }

    #[test]
    fn names_are_validated_as_by_upstream() {
        assert!(validate_dns_label("web-1").is_empty());
        assert_eq!(validate_dns_label("Web"), [LABEL]);
        assert_eq!(validate_dns_label("-web"), [LABEL]);
        assert!(validate_dns_subdomain("a.b-c.d").is_empty());
        assert_eq!(validate_dns_subdomain("a..b"), [SUBDOMAIN]);
        assert_eq!(validate_dns_subdomain(""), [SUBDOMAIN]);
        assert_eq!(
            validate_dns_subdomain(&"a".repeat(254)),
            ["must be no more than 253 characters"]
        );
        assert!(validate_dns_subdomain(&"a".repeat(253)).is_empty());
        assert!(validate_dns_subdomain_with_underscores("_a._b").is_empty());
        for name in ["a..b", "A", "-a"] {
            let found = validate_dns_subdomain_with_underscores(name);
            assert_eq!(found, [SUBDOMAIN_UNDERSCORES], "{name}");
        }
    }

    /// Upstream counts bytes everywhere, and says so for labels only.
    #[test]
    fn the_length_of_a_label_is_in_bytes() {
        let long = "a".repeat(64);
        assert_eq!(
            validate_label_value(&long),
            ["must be no more than 63 bytes"]
        );
        let key = format!("{}/{long}", "b".repeat(254));
        assert_eq!(
            validate_label_key(&key),
            [
                "prefix part must be no more than 253 bytes",
                "name part must be no more than 63 bytes"
            ]
        );
        assert_eq!(
            validate_dns_label(&long),
            ["must be no more than 63 characters"]
        );
    }

    #[test]
    fn config_keys_are_validated_as_by_upstream() {
        for key in ["a", "A.b_c-1", ".hidden", "a..b"] {
            assert!(validate_config_key(key).is_empty(), "{key}");
        }
        assert_eq!(validate_config_key(""), [CONFIG_KEY]);
        assert_eq!(validate_config_key("a b"), [CONFIG_KEY]);
        assert_eq!(validate_config_key("."), ["must not be '.'"]);
        assert_eq!(validate_config_key(".."), ["must not be '..'"]);
        assert_eq!(validate_config_key("..a"), ["must not start with '..'"]);
    }

    type Check = fn(&str) -> Vec<String>;

    /// Checks valid and invalid names, both separated by spaces, and the empty name.
    fn assert_valid_and_invalid(check: Check, valid: &str, invalid: &str) {
        for name in valid.split(' ') {
            assert_eq!(check(name), Vec::<String>::new(), "{name}");
        }
        for name in invalid.split(' ').chain([""]) {
            assert!(!check(name).is_empty(), "{name:?}");
        }
    }

    /// Names that are neither labels nor subdomains.
    const NO_NAMES: &str =
        "A ABC aBc A1 A-1 1-A - a- -a 1- -1 _ a_ _a a_b 1_ _1 1_2 . a. .a 1. .1 a\tb";

    #[test]
    fn dns_labels_have_lower_case_letters_digits_and_inner_hyphens() {
        let valid = "a ab abc a1 a-1 a--1--2--b 0 01 012 1a 1-a 1--a--b--2";
        assert_valid_and_invalid(
            validate_dns_label,
            &format!("{valid} {}", "a".repeat(63)),
            &format!("{NO_NAMES} a.b 1.2 {}", "a".repeat(64)),
        );
        assert_eq!(validate_dns_label("a.b"), [DOTS]);
        assert_eq!(validate_dns_label("a b"), [LABEL]);
    }

    #[test]
    fn dns_subdomains_are_labels_separated_by_dots() {
        let valid = "a ab a--1--2--b 0 012 1--a--b--2 a.a ab.a a1.a a-1.a a--1--2--b.a a.1 a-1.1 0.a 1-a.a 0.1 1--a--b--2.1 \
            a.b.c.d.e aa.bb.cc.dd.ee 1.2.3.4.5 11.22.33.44.55";
        let invalid = "a..b 1..2 A.a aB.a ab.A A1.a a1.A A.1 1A.1 0.A 012.A 1A.a A.B.C.D.E a.B.c.d.e aa.bB.cc.dd.ee a@b a,b \
            a_b a;b a:b a%b a?b a$b";
        assert_valid_and_invalid(
            validate_dns_subdomain,
            &format!("{valid} {}", "a".repeat(253)),
            &format!("{NO_NAMES} {invalid} {}", "a".repeat(254)),
        );
        assert_valid_and_invalid(
            validate_dns_subdomain_with_underscores,
            "example.com _example.com sub._example.com sub-domain.example.com sub_domain.example.com",
            "Example.com -example.com example.com- example@.com example..com _ a_ a_.b __a",
        );
        let long = format!("a.{}.com", "\0".repeat(251));
        let found = validate_dns_subdomain_with_underscores(&long);
        assert_eq!(
            found,
            ["must be no more than 253 characters", SUBDOMAIN_UNDERSCORES]
        );
    }

    #[test]
    fn qualified_names_may_have_a_dns_subdomain_as_prefix() {
        let valid = "simple now-with-dashes 1-starts-with-num 1234 simple/simple now-with-dashes/simple \
            now-with-dashes/now-with-dashes now.with.dots/simple now-with.dashes-and.dots/simple 1-num.2-num/3-num 1234/5678 \
            1.2.3.4/5678 Uppercase_Is_OK_123 example.com/Uppercase_Is_OK_123 requests.storage-foo";
        let invalid = "nospecialchars%^=@ cantendwithadash- -cantstartwithadash- only/one/slash Example.com/abc example_com/abc \
            example.com/ /simple example.com/_e example.com/e_ example.com/e?";
        let (domain, name) = ("a".repeat(253), "b".repeat(63));
        assert_valid_and_invalid(
            validate_qualified_name,
            &format!("{valid} {name} {domain}/{name}"),
            &format!("{invalid} {name}b a{domain}/abc"),
        );
    }

    #[test]
    fn label_values_may_be_empty_and_config_keys_may_not() {
        let valid = "simple now-with-dashes 1-starts-with-num end-with-num-1 1234";
        let invalid = "nospecialchars%^=@ Tama-nui-te-r\u{101}.is.M\u{101}ori.sun \\backslashes\\are\\bad -starts-with-dash \
            ends-with-dash- .starts.with.dot ends.with.dot.";
        let strict = |value: &str| match value {
            "" => vec!["may be empty".to_owned()],
            value => validate_label_value(value),
        };
        assert_valid_and_invalid(
            strict,
            &format!("{valid} {}", "a".repeat(63)),
            &format!("{invalid} {}", "a".repeat(64)),
        );
        assert_valid_and_invalid(
            validate_config_key,
            "a good good-good still.good this.is.also.good .so.is.this THIS_IS_GOOD so_is_this_17",
            ". .. ..bad b*d bad!&bad",
        );
    }

    #[test]
    fn a_path_segment_may_be_anything_but_dots_and_text_with_slashes_or_percent_signs() {
        for valid in ["a", "A b", "_", "...", "a:b", ".a"] {
            assert_eq!(validate_path_segment(valid), Vec::<String>::new());
        }
        assert_eq!(validate_path_segment(".."), ["may not be '..'"]);
        assert_eq!(validate_path_segment("."), ["may not be '.'"]);
        assert_eq!(
            validate_path_segment("%a/b"),
            ["may not contain '/'", "may not contain '%'"]
        );
    }

    #[test]
    fn keys_and_values_of_labels_are_validated_as_by_upstream() {
        assert!(validate_label_key("app.kubernetes.io/name").is_empty());
        assert_eq!(
            validate_label_key("/name"),
            ["prefix part must be non-empty"]
        );
        assert_eq!(validate_label_key("a/")[0], "name part must be non-empty");
        assert!(validate_label_key("a/b/c")[0].starts_with("a valid label key must consist of"));
        assert!(validate_label_value("").is_empty());
        assert!(validate_label_value("1.2_x").is_empty());
        assert_eq!(validate_label_value("a b"), [VALUE]);
    }
}
