//! Classes of vulnerability: each has a test that names it, and those of connections are ruled out by what code can
//! connect at all.

use std::path::{Path, PathBuf};

use super::documents::{files, read};

/// The classes, and the defects of the same kinds, that a test must name in its doc comment, as in `Checks V3.`
const NAMED: &[&str] = &[
    "V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8", "V9", "V10", "V11", "V12", "V13", "V14", "V15",
    "V16", "V17", "V18", "V19", "V20", "DG5", "DG6", "DG7", "DG9", "DG14", "DG16", "DG19", "DG20",
    "DG22", "DG23",
];

/// Parts of paths by which code opens connections.
const CONNECTS: &[&str] = &[
    "TcpStream",
    "TcpSocket",
    "UdpSocket",
    "UnixStream",
    "lookup_host",
    "ToSocketAddrs",
    "HttpConnector",
    "Endpoint::",
    "connect_lazy",
    "http_client",
];

/// The crates that are controllers or host them.
const CONTROLLERS: &[&str] = &["controller-manager", "scheduler"];

/// Dependencies that open connections.
const CLIENTS: &[&str] = &[
    "etcd-client",
    "hyper",
    "hyper-rustls",
    "hyper-util",
    "kube",
    "reqwest",
    "tokio-rustls",
    "tokio-tungstenite",
];

/// The modules of the gateway that connect to addresses, and what they are.
const OF_GATEWAY: &[(&str, &str)] = &[
    ("agents/address.rs", "connections of the policy"),
    ("agents/rpc.rs", "calls over a connection of the policy"),
    ("agents/tls.rs", "TLS over a connection of the policy"),
    (
        "aggregation/server.rs",
        "TLS over a connection of the policy",
    ),
    ("dial_policy.rs", "the policy"),
    ("outbound/dialer.rs", "resolves names for the policy"),
    ("outbound/named.rs", "servers that the settings name"),
    ("server_info.rs", "the gateway's own address"),
];

/// Returns the sources of programs, which are neither tests nor for them.
fn sources(below: &Path) -> Vec<PathBuf> {
    let mut all = files();
    all.retain(|path| {
        let is_source = path.extension().is_some_and(|end| end == "rs");
        let parts = || path.iter().filter_map(|part| part.to_str());
        is_source && path.starts_with(below) && parts().all(|part| !part.starts_with("tests"))
    });
    all
}

/// Returns the text of a source without its tests.
fn code(path: &Path) -> String {
    let text = read(path);
    let end = text.find("#[cfg(test)]\nmod tests {");
    text[..end.unwrap_or(text.len())].to_owned()
}

/// Returns whether the doc comment of a test names a class.
fn names(line: &str, class: &str) -> bool {
    let Some((_, named)) = line.trim_start().split_once("Checks ") else {
        return false;
    };
    let is_word = |letter: char| letter.is_ascii_alphanumeric();
    line.trim_start().starts_with("///")
        && named
            .split(|letter| !is_word(letter))
            .any(|word| word == class)
}

#[test]
fn every_class_is_named_by_a_test() {
    let sources = files();
    let sources = sources
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let texts: Vec<_> = sources.map(|path| read(path)).collect();
    for class in NAMED {
        let mut lines = texts.iter().flat_map(|text| text.lines());
        assert!(
            lines.any(|line| names(line, class)),
            "no test checks {class}"
        );
    }
}

#[test]
fn a_class_is_a_whole_word_of_a_doc_comment() {
    assert!(names("    /// Checks V1 and DG5: it holds.", "V1"));
    assert!(names("/// Checks V13 (CVE-2025-4563).", "V13"));
    assert!(!names("/// Checks V13.", "V1"));
    assert!(!names("// Checks V1.", "V1"));
    assert!(!names("/// As V1.", "V1"));
}

/// Checks V8 (CVE-2025-13281, CVE-2020-8555): a controller speaks to gateways only, by a crate that all of them share,
/// so that nothing an object names makes it connect elsewhere.
#[test]
fn controllers_connect_to_nothing_by_themselves() {
    let mut seen = 0;
    for package in super::packages() {
        let name = super::short(&package["name"]);
        if !name.ends_with("-controller") && !CONTROLLERS.contains(&name.as_str()) {
            continue;
        }
        seen += 1;
        for dependency in super::shipped(&package) {
            let used = super::short(&dependency["name"]);
            assert!(!CLIENTS.contains(&used.as_str()), "{name} uses {used}");
        }
        for path in sources(&Path::new("services").join(&name).join("src")) {
            let code = code(&path);
            let connects = CONNECTS.iter().find(|one| code.contains(**one));
            assert_eq!(connects, None, "{}", path.display());
        }
    }
    assert!(seen > 15, "{seen}");
}

/// Checks V5 (CVE-2020-8562): the gateway connects by its policy alone, which takes an address and no name, so that the
/// address that was checked is the one that is connected to.
#[test]
fn the_gateway_connects_by_its_policy_only() {
    let gateway = Path::new("services/gateway/src");
    let mut found = Vec::new();
    for path in sources(gateway) {
        let code = code(&path);
        if CONNECTS.iter().any(|one| code.contains(one)) {
            let path = path.strip_prefix(gateway).expect("a source of the gateway");
            found.push(path.to_string_lossy().into_owned());
        }
    }
    let known: Vec<_> = OF_GATEWAY.iter().map(|(path, _)| *path).collect();
    assert_eq!(found, known);
    let connects = |path: &str| {
        code(&gateway.join(path))
            .matches("TcpStream::connect")
            .count()
    };
    let by_policy: Vec<_> = known.iter().map(|path| connects(path)).collect();
    assert_eq!(by_policy, [0, 0, 0, 0, 1, 0, 0, 0]);
}
