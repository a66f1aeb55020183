//! The formats of strings that upstream checks (kube-openapi's package of this name).

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

type Check = fn(&str) -> bool;

/// Names without hyphens: upstream compares them so.
const FORMATS: &[(&str, Check)] = &[
    ("bsonobjectid", |text| {
        text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    }),
    ("byte", |text| BASE64.is_match(text)),
    ("cidr", is_cidr),
    ("creditcard", is_credit_card),
    ("date", is_date),
    ("datetime", is_date_time),
    ("duration", is_duration),
    ("email", is_email),
    ("hexcolor", |text| HEX_COLOR.is_match(text)),
    ("hostname", is_hostname),
    ("ipv4", is_ipv4),
    ("ipv6", is_ipv6),
    ("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("k8slongname", |text| {
        text.len() <= 253 && text.split('.').all(is_label)
    }),
    ("k8sshortname", |text| text.len() <= 63 && is_label(text)),
    ("mac", is_mac),
    ("password", |_| true),
    ("rgbcolor", |text| RGB_COLOR.is_match(text)),
    ("ssn", |text| text.len() == 11 && SSN.is_match(text)),
    ("uri", is_request_uri),
    ("uuid", |text| UUID.is_match(text)),
    ("uuid3", |text| is_uuid(text, "3")),
    ("uuid4", |text| is_uuid(text, "4")),
    ("uuid5", |text| is_uuid(text, "5")),
];

fn find(format: &str) -> Option<Check> {
    let name = format.replace('-', "");
    let found = FORMATS.iter().find(|(known, _)| *known == name);
    found.map(|(_, check)| *check)
}

/// Returns whether the format is known. Others are ignored.
pub fn is_known(format: &str) -> bool {
    find(format).is_some()
}

/// Returns whether a text has the format. Every text has a format that is not known.
pub fn allows(format: &str, text: &str) -> bool {
    find(format).is_none_or(|check| check(text))
}

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

static BASE64: LazyLock<Regex> = LazyLock::new(|| {
    compiled("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$")
});
static HEX_COLOR: LazyLock<Regex> =
    LazyLock::new(|| compiled("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let part = "[ \t]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[ \t]*";
    compiled(&format!("^rgb\\({part},{part},{part}\\)$"))
});
static SSN: LazyLock<Regex> = LazyLock::new(|| compiled("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static UUID: LazyLock<Regex> = LazyLock::new(|| {
    compiled("^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
});
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    compiled("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$")
});
static SCALA_DURATION: LazyLock<Regex> = LazyLock::new(|| compiled("([0-9]+)\\s*([A-Za-zµ]+)"));
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
    )
});

fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter()
        .all(|byte| byte.is_some_and(|byte| plain(*byte)))
        && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
}

/// The version is the first digit of the third group, and versions 4 and 5 have a variant in the fourth.
fn is_uuid(text: &str, version: &str) -> bool {
    if !UUID.is_match(text) {
        return false;
    }
    let digits: String = text.chars().filter(|letter| *letter != '-').collect();
    let variant = digits[16..17].to_lowercase();
    &digits[12..13] == version && (version == "3" || "89ab".contains(&variant))
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && HOSTNAME.is_match(text) && text.split('.').all(|label| label.len() <= 63)
}

/// Leading zeros are accepted, as upstream does for compatibility.
fn sloppy_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        *octet = digits
            .then(|| part.trim_start_matches('0'))
            .map(|part| if part.is_empty() { "0" } else { part })?
            .parse()
            .ok()?;
    }
    parts.next().is_none().then(|| octets.into())
}

/// An IPv4 address, or one mapped into IPv6.
fn is_ipv4(text: &str) -> bool {
    let mapped = text.contains('.') && text.parse::<Ipv6Addr>().is_ok();
    sloppy_ipv4(text).is_some() || mapped
}

fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    let Some(bits) = digits.then(|| bits.parse::<u16>().ok()).flatten() else {
        return false;
    };
    match sloppy_ipv4(address) {
        Some(_) => bits <= 32,
        None => is_ipv6(address) && bits <= 128,
    }
}

/// Groups of hexadecimal digits: pairs with colons or hyphens, or fours with dots; 6, 8 or 20 bytes.
fn is_mac(text: &str) -> bool {
    let (separator, width) = match (text.as_bytes().get(2), text.as_bytes().get(4)) {
        (Some(b':'), _) => (':', 2),
        (Some(b'-'), _) => ('-', 2),
        (_, Some(b'.')) => ('.', 4),
        _ => return false,
    };
    let mut groups = text.split(separator);
    let whole = groups
        .all(|group| group.len() == width && group.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let bytes = text.split(separator).count() * width / 2;
    whole && [6, 8, 20].contains(&bytes)
}

/// An absolute URI or an absolute path, as of a request.
pub fn is_request_uri(text: &str) -> bool {
    let clean = !text.is_empty() && text.chars().all(|letter| !letter.is_ascii_control());
    if !clean || !has_valid_escapes(text) {
        return false;
    }
    if text == "*" || text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let letters = scheme
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let named = scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && letters;
    named && rest.strip_prefix("//").is_none_or(has_valid_host)
}

fn has_valid_escapes(text: &str) -> bool {
    let path = text.split(['?', '#']).next().unwrap_or_default();
    path.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().iter().take(2);
        digits.clone().count() == 2 && digits.into_iter().all(u8::is_ascii_hexdigit)
    })
}

fn has_valid_host(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let (host, port) = match host.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((host, port)) => (host, port),
            None => return false,
        },
        None => match host.split_once(':') {
            Some((name, _)) => (name, &host[name.len()..]),
            None => (host, ""),
        },
    };
    let digits = port.strip_prefix(':').unwrap_or(port).bytes();
    let is_port = port.is_empty() || port.starts_with(':');
    is_port
        && digits.into_iter().all(|byte| byte.is_ascii_digit())
        && !host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}'])
}

/// An address with an optional display name: `a@b`, `Ann <a@b>`.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>') {
        Some(rest) => match rest.rsplit_once('<') {
            Some((_, address)) => address,
            None => return false,
        },
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.starts_with('[') && domain.ends_with(']');
    (quoted || is_dotted_atom(local)) && (literal || is_dotted_atom(domain))
}

fn is_dotted_atom(text: &str) -> bool {
    let allowed = |letter: char| {
        letter.is_ascii_alphanumeric()
            || !letter.is_ascii()
            || "!#$%&'*+-/=?^_`{|}~".contains(letter)
    };
    text.split('.')
        .all(|atom| !atom.is_empty() && atom.chars().all(allowed))
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = bytes.len() == 10 && bytes[4] == b'-' && bytes[7] == b'-';
    let digits = bytes
        .iter()
        .enumerate()
        .all(|(at, byte)| at == 4 || at == 7 || byte.is_ascii_digit());
    if !shape || !digits {
        return false;
    }
    let number = |range: std::ops::Range<usize>| text[range].parse::<u32>().unwrap_or_default();
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    (1..=days_of(month, year)).contains(&day)
}

fn days_of(month: u32, year: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        _ => 0,
    }
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let Some(found) = TIME.captures(time) else {
        return false;
    };
    is_date(date) && &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

/// Go's notation (`1h30m`), or a number and a word as in Scala (`2 hours`).
fn is_duration(text: &str) -> bool {
    const WORDS: [&str; 8] = [
        "nano", "micro", "milli", "sec", "min", "hour", "day", "week",
    ];
    const UNITS: [&str; 13] = [
        "ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk", "sec", "min",
    ];
    if is_go_duration(text) {
        return true;
    }
    SCALA_DURATION.captures_iter(text).any(|found| {
        let unit = found[2].to_lowercase();
        found[1].parse::<i64>().is_ok()
            && (UNITS.contains(&unit.as_str()) || WORDS.iter().any(|word| unit.starts_with(word)))
    })
}

fn is_go_duration(text: &str) -> bool {
    const UNITS: [&str; 8] = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let mut parts = 0;
    while !rest.is_empty() {
        let number = rest
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .unwrap_or(rest.len());
        let (digits, tail) = rest.split_at(number);
        let unit = tail
            .find(|letter: char| letter.is_ascii_digit() || letter == '.')
            .unwrap_or(tail.len());
        let (name, tail) = tail.split_at(unit);
        let valid =
            digits.matches('.').count() <= 1 && digits.bytes().any(|byte| byte.is_ascii_digit());
        if !valid || !UNITS.contains(&name) {
            return false;
        }
        rest = tail;
        parts += 1;
    }
    parts > 0
}

fn is_isbn10(text: &str) -> bool {
    let text = compact(text);
    let digits: Vec<u32> = text
        .chars()
        .map(|letter| match letter {
            'X' => 10,
            digit => digit.to_digit(10).unwrap_or(11),
        })
        .collect();
    let shape =
        digits.len() == 10 && digits[..9].iter().all(|digit| *digit < 10) && digits[9] <= 10;
    let sum: u32 = digits
        .iter()
        .zip(1..)
        .map(|(digit, weight)| digit * weight)
        .sum();
    shape && sum.is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let text = compact(text);
    if text.len() != 13 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let digits = text.bytes().zip([1u32, 3].into_iter().cycle());
    let sum: u32 = digits
        .map(|(digit, weight)| u32::from(digit - b'0') * weight)
        .sum();
    sum.is_multiple_of(10)
}

fn compact(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_whitespace() && *letter != '-')
        .collect()
}

/// The number has a known issuer's prefix and length, and Luhn's check digit.
fn is_credit_card(text: &str) -> bool {
    static ISSUERS: LazyLock<Regex> = LazyLock::new(|| {
        compiled(
            "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
        )
    });
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let luhn = digits.bytes().rev().enumerate().map(|(place, digit)| {
        let doubled = u32::from(digit - b'0') << (place % 2);
        doubled / 10 + doubled % 10
    });
    ISSUERS.is_match(&digits) && luhn.sum::<u32>().is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::allows;

    #[test]
    fn formats_allow_what_upstream_allows() {
        let cases = [
            (
                "date",
                "2024-02-29 2000-12-31",
                "2023-02-29 2024-1-1 24-01-01 2024-13-01 x",
            ),
            (
                "date-time",
                "2024-01-01T00:00:00Z 2024-01-01t23:59:59.123+02:00",
                "2024-01-01 2024-01-01T24:00:00Z 2024-01-01T00:00:00",
            ),
            ("email", "a@b x.y@example.com", "a @b a@ a..b@c"),
            ("ipv4", "1.2.3.4 010.0.0.1", "1.2.3 1.2.3.256 ::1 a.b.c.d"),
            ("ipv6", "::1 fe80::1 ::ffff:1.2.3.4", "1.2.3.4 :1 g::1"),
            (
                "cidr",
                "10.0.0.0/8 ::/0",
                "10.0.0.0 10.0.0.0/33 ::/129 10.0.0.0/-1",
            ),
            (
                "mac",
                "01:23:45:67:89:ab 0123.4567.89ab 01-23-45-67-89-ab",
                "01:23:45 01:23:45:67:89:zz 0123456789ab",
            ),
            (
                "uuid",
                "f47ac10b-58cc-4372-8567-0e02b2c3d479 F47AC10B58CC437285670E02B2C3D479",
                "x f47ac10b-58cc-4372-8567",
            ),
            (
                "uuid4",
                "f47ac10b-58cc-4372-8567-0e02b2c3d479",
                "f47ac10b-58cc-3372-8567-0e02b2c3d479 f47ac10b-58cc-4372-7567-0e02b2c3d479",
            ),
            (
                "uri",
                "http://a/b /path mailto:x http://[::1]:80/",
                "a/b http://[::1 http://a:x/ %zz",
            ),
            (
                "hostname",
                "a example.com 1a.example.com",
                "-a a_b.com a..com",
            ),
            ("byte", "YQ== YWJj", "Y YQ= *"),
            ("duration", "1h30m 1.5s -2m 3days 0", "x 1 h1"),
            (
                "isbn",
                "0321751043 978-0321751041",
                "0321751044 978-0321751042",
            ),
            ("creditcard", "4111-1111-1111-1111", "4111-1111-1111-1112 1"),
            ("ssn", "111-11-1111", "111-1-1111 111111111"),
            ("hexcolor", "#fff ffffff", "#ff #ggg"),
            ("rgbcolor", "rgb(1,2,255)", "rgb(1,2,256) rgb(1,2)"),
            ("k8s-short-name", "a a-b1", "A a.b -a a_b"),
            ("k8s-long-name", "a.b a-1.c", "A a..b -a"),
            ("unknown", "x", ""),
        ];
        for (format, valid, invalid) in cases {
            for text in valid.split(' ') {
                assert!(allows(format, text), "{format} {text}");
            }
            for text in invalid.split(' ').filter(|text| !text.is_empty()) {
                assert!(!allows(format, text), "{format} {text}");
            }
        }
    }
}
