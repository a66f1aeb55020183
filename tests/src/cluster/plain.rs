//! Processes without TLS and authorization, which tell what these cost.

use setpoint_ctl::launcher::ProcessSpec;

/// The flags of TLS, each with a value: of all services, of a gateway for etcd and for machines that join, and of etcd.
const WITH_VALUE: [&str; 10] = [
    "--tls-ca-file",
    "--tls-certificate-file",
    "--tls-key-file",
    "--etcd-ca-file",
    "--etcd-certificate-file",
    "--etcd-key-file",
    "--cluster-info-server",
    "--trusted-ca-file",
    "--cert-file",
    "--key-file",
];
const CLIENT_CERT_AUTH: &str = "--client-cert-auth";

/// Changes the arguments of a process so that it neither speaks TLS nor authorizes anything.
pub(super) fn without_guard(process: &mut ProcessSpec) {
    let mut kept = Vec::new();
    let mut arguments = std::mem::take(&mut process.args).into_iter();
    while let Some(argument) = arguments.next() {
        if WITH_VALUE.contains(&argument.as_str()) {
            arguments.next();
        } else if argument != CLIENT_CERT_AUTH {
            kept.push(argument.replace("https://", "http://"));
        }
    }
    let flags: &[&str] = match process.service {
        "etcd" => &[],
        "gateway" => &["--tls-plaintext", "--authorization-modes", "AlwaysAllow"],
        _ => &["--tls-plaintext"],
    };
    kept.extend(flags.iter().map(ToString::to_string));
    process.args = kept;
}

/// Returns the `<host>:<port>` of a URL, or of several with commas between them.
pub(super) fn place(url: &str) -> String {
    url.trim_start_matches("https://")
        .replace("https://", "http://")
}
