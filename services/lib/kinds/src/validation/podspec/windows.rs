//! Validation of Windows options.

use setpoint_model::names;
use setpoint_proto::core::{PodSpec, SecurityContext, WindowsSecurityContextOptions};

use super::validate::for_each_container;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const CREDENTIALS_MAX: usize = 64 << 10;
const DOMAIN_MAX: usize = 255;
const USER_MAX: usize = 104;
/// The longest label of a domain name.
const LABEL_MAX: usize = 63;
const NETBIOS_MAX: usize = 15;
const NOT_IN_NETBIOS: &str = "\\/:*?\"<>|";
const NOT_IN_USERS: &str = "\"/\\:;|=,+*?<>@[]";

/// Validates the Windows options of a Pod or a container.
pub fn validate(
    options: Option<&WindowsSecurityContextOptions>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let Some(options) = options else {
        return;
    };
    if let Some(name) = &options.gmsa_credential_spec_name {
        errors.check(
            &path.field("gmsaCredentialSpecName"),
            name,
            names::validate_dns_subdomain,
        );
    }
    if let Some(credentials) = &options.gmsa_credential_spec {
        let at = path.field("gmsaCredentialSpec");
        if credentials.is_empty() {
            let detail = "gmsaCredentialSpec cannot be an empty string";
            errors.invalid(&at, credentials, detail);
        } else if credentials.len() > CREDENTIALS_MAX {
            let detail = "gmsaCredentialSpec size must be under 64 KiB";
            errors.invalid(&at, credentials, detail);
        }
    }
    if let Some(name) = &options.run_as_user_name {
        for wrong in check_user_name(name) {
            errors.invalid(&path.field("runAsUserName"), name, wrong);
        }
    }
}

/// Returns the errors of a user name, optionally with a domain and a backslash before it.
fn check_user_name(name: &str) -> Vec<&'static str> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string"];
    }
    if name.contains(|letter: char| letter.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters"];
    }
    let (domain, user) = match name.split_once('\\') {
        Some((_, user)) if user.contains('\\') => {
            return vec!["runAsUserName cannot contain more than one backslash"];
        }
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let wrong = |wrong: bool, what: &'static str| wrong.then_some(what);
    let is_filler = |letter: char| ". ".contains(letter);
    [
        wrong(
            domain.is_some_and(|domain| domain.len() > DOMAIN_MAX),
            "runAsUserName's Domain length must be under 256 characters",
        ),
        wrong(
            domain.is_some_and(|domain| !is_netbios(domain) && !is_domain(domain)),
            "runAsUserName's Domain doesn't match the NetBios nor the DNS format",
        ),
        wrong(user.is_empty(), "runAsUserName's User cannot be empty"),
        wrong(
            user.len() > USER_MAX,
            "runAsUserName's User length must not be longer than 104 characters",
        ),
        wrong(
            !user.is_empty() && user.chars().all(is_filler),
            "runAsUserName's User cannot contain only periods or spaces",
        ),
        wrong(
            user.contains(|letter| NOT_IN_USERS.contains(letter)),
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn is_netbios(domain: &str) -> bool {
    let length = domain.chars().count();
    (1..=NETBIOS_MAX).contains(&length)
        && !domain.starts_with('.')
        && !domain.contains(|letter| NOT_IN_NETBIOS.contains(letter))
}

fn is_domain(domain: &str) -> bool {
    domain.split('.').all(|label| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=LABEL_MAX).contains(&label.len())
            && label.bytes().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

/// Validates host processes: either all containers are host processes or none, and they use the host network.
pub fn validate_host_processes(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let of_pod = spec.security_context.as_ref();
    let of_pod = of_pod.and_then(|context| context.windows_options.as_ref()?.host_process);
    let (mut all, mut some) = (true, false);
    for_each_container(spec, path, |container, _, path| {
        let own = host_process(container.security_context.as_ref());
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let path = path.field("securityContext");
            let path = path.field("windowsOptions");
            let detail = format!(
                "pod hostProcess value must be identical if both are specified, was {of_pod}"
            );
            errors.invalid(&path.field("hostProcess"), own, detail);
        }
        let is_host_process = own.or(of_pod).unwrap_or_default();
        (all, some) = (all && is_host_process, some || is_host_process);
    });
    if some && !all {
        let detail = "If pod contains any hostProcess containers then all containers must be \
            HostProcess containers";
        errors.invalid(path, "", detail);
    }
    if some && !spec.host_network {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.invalid(&path.field("hostNetwork"), false, detail);
    }
}

fn host_process(context: Option<&SecurityContext>) -> Option<bool> {
    context?.windows_options.as_ref()?.host_process
}
