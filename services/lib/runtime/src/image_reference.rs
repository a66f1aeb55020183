//! References to images, in the grammar of Docker and the OCI. Pure.

/// The registry of references that name none.
const DEFAULT_REGISTRY: &str = "docker.io";
/// Maximum length of the name of a repository.
const MAX_NAME: usize = 255;
/// Maximum length of a tag.
const MAX_TAG: usize = 128;

/// Returns the name, the tag and the digest of a reference, which may be malformed.
fn split(reference: &str) -> (&str, Option<&str>, Option<&str>) {
    let (named, digest) = match reference.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (reference, None),
    };
    match named.rsplit_once(':') {
        // A colon before the last slash is that of a port.
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag), digest),
        _ => (named, None, digest),
    }
}

/// Returns the name of an image without its tag and digest, with the host of its registry if the reference has one.
pub fn image_name(reference: &str) -> &str {
    split(reference).0
}

/// Returns the host of the registry of an image, with its port if it has one.
pub fn registry(reference: &str) -> &str {
    match split(reference).0.split_once('/') {
        Some((host, _)) if is_host(host) => host,
        _ => DEFAULT_REGISTRY,
    }
}

/// Returns whether a reference is well formed: `[host[:port]/]path[:tag][@algorithm:digest]`.
pub fn is_valid(reference: &str) -> bool {
    let (name, tag, digest) = split(reference);
    let path = match name.split_once('/') {
        Some((host, path)) if is_host(host) => path,
        _ => name,
    };
    name.len() <= MAX_NAME
        && path.split('/').all(is_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
}

/// Returns whether the first part of a name is a host: it has a dot or a port, is `localhost`, or has an upper-case
/// letter, which no path has.
fn is_host(part: &str) -> bool {
    let (name, port) = part.rsplit_once(':').unwrap_or((part, "0"));
    let is_named = part.contains(['.', ':'])
        || part == "localhost"
        || part.chars().any(|one| one.is_ascii_uppercase());
    let labels = name.trim_start_matches('[').trim_end_matches(']');
    let is_label = |one: char| one.is_ascii_alphanumeric() || "-.:".contains(one);
    let is_port = !port.is_empty() && port.chars().all(|one| one.is_ascii_digit());
    is_named && !labels.is_empty() && labels.chars().all(is_label) && is_port
}

/// Returns whether a part of a path is one: lower-case letters and digits, with separators between them.
fn is_component(part: &str) -> bool {
    let is_plain = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit();
    let separators = part.split(is_plain).filter(|between| !between.is_empty());
    let is_separator = |between: &str| {
        [".", "_", "__"].contains(&between) || between.chars().all(|one| one == '-')
    };
    part.starts_with(is_plain) && part.ends_with(is_plain) && separators.clone().all(is_separator)
}

fn is_tag(tag: &str) -> bool {
    let is_word = |one: char| one.is_ascii_alphanumeric() || one == '_';
    tag.starts_with(is_word)
        && tag.len() <= MAX_TAG
        && tag.chars().all(|one| is_word(one) || ".-".contains(one))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, value)) = digest.split_once(':') else {
        return false;
    };
    let is_named = algorithm.starts_with(|one: char| one.is_ascii_alphabetic());
    is_named && value.len() >= 32 && value.chars().all(|one| one.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_well_formed_or_not() {
        let digest = "sha256:".to_owned() + &"0a".repeat(32);
        for valid in [
            "nginx",
            "nginx:1.25-alpine_3",
            "library/nginx",
            "docker.io/library/nginx:latest",
            "localhost/app",
            "localhost:5000/team/app:V1",
            "127.0.0.1:5000/a-b/c__d.e",
            "[::1]:5000/app",
            "Registry/app",
            &format!("nginx@{digest}"),
            &format!("here:5000/nginx:1@{digest}"),
        ] {
            assert!(is_valid(valid), "{valid}");
        }
        for invalid in [
            "",
            "no Image",
            "Nginx",
            "nginx:",
            "nginx:a b",
            "nginx:-1",
            "/nginx",
            "nginx/",
            "a//b",
            "a..b",
            "-a",
            "a___b",
            "nginx@sha256:short",
            "nginx@",
            "here:port/nginx",
            "https://here/nginx",
        ] {
            assert!(!is_valid(invalid), "{invalid}");
        }
    }
}
