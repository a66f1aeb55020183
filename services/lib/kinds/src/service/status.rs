//! The status of a Service: the addresses of its load balancer.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::core::{LoadBalancerIngress, Service, ServiceStatus};

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::ip;

const IP_MODES: &[&str] = &["Proxy", "VIP"];

/// Sets the default mode of addresses of the load balancer.
pub(super) fn fill_defaults(status: &mut ServiceStatus) {
    for ingress in &mut status.load_balancer.ingress {
        if !ingress.ip.is_empty() {
            ingress.ip_mode.get_or_insert_with(|| "VIP".into());
        }
    }
}

/// Validates a change of the status.
pub(super) fn validate(
    new: &Service,
    old: &Service,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let ingress = &new.status.load_balancer.ingress;
    if new.spec.r#type != "LoadBalancer" && !ingress.is_empty() {
        errors.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'");
        return;
    }
    let known = old.status.load_balancer.ingress.iter();
    let known: BTreeSet<_> = known.map(|one| one.ip.as_str()).collect();
    for (index, one) in ingress.iter().enumerate() {
        let path = path.index(index);
        if !one.ip.is_empty() && !known.contains(one.ip.as_str()) {
            ip::validate(&one.ip, &path.field("ip"), errors);
        }
        validate_mode(one, &path.field("ipMode"), errors);
        validate_hostname(&one.hostname, &path.field("hostname"), errors);
    }
}

fn validate_mode(ingress: &LoadBalancerIngress, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match ingress.ip_mode.as_deref() {
        None if !ingress.ip.is_empty() => {
            errors.required(path, "must be specified when `ip` is set");
        }
        Some(_) if ingress.ip.is_empty() => {
            errors.forbidden(path, "may not be specified when `ip` is not set");
        }
        mode => errors.one_of(path, mode, IP_MODES),
    }
}

fn validate_hostname(hostname: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if hostname.is_empty() {
        return;
    }
    errors.check(path, hostname, names::validate_dns_subdomain);
    if ip::parse(hostname).is_some() {
        errors.invalid(path, hostname, "must be a DNS name, not an IP address");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balanced(addresses: &[&str]) -> Service {
        let mut service = Service::default();
        service.spec.r#type = "LoadBalancer".into();
        let ingress = addresses.iter().map(|ip| LoadBalancerIngress {
            ip: (*ip).to_owned(),
            ..Default::default()
        });
        service.status.load_balancer.ingress = ingress.collect();
        fill_defaults(&mut service.status);
        service
    }

    #[test]
    fn addresses_of_the_old_status_are_accepted() {
        let old = balanced(&["1.2.3.04"]);
        for new in [&["1.2.3.04"][..], &["1.2.3.04", "5.6.7.8"], &["1.2.3.4"]] {
            let mut errors = FieldErrors::default();
            validate(
                &balanced(new),
                &old,
                &FieldPath::root("ingress"),
                &mut errors,
            );
            assert_eq!(errors.to_string(), "[]");
        }
    }
}
