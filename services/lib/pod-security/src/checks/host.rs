//! The host: its namespaces and ports, and addresses of others that its kubelet would probe for a Pod.

use std::collections::BTreeSet;

use setpoint_proto::core::{HttpGetAction, PodSpec, TcpSocketAction};
use setpoint_proto::meta::ObjectMeta;

use crate::Violation;
use crate::containers::{Container, names};
use crate::wording::{containers, number, quoted};

pub(super) fn namespaces(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let shared = [
        ("hostNetwork=true", spec.host_network),
        ("hostPID=true", spec.host_pid),
        ("hostIPC=true", spec.host_ipc),
    ];
    let shared = shared.into_iter().filter(|(_, is_shared)| *is_shared);
    let shared: Vec<_> = shared.map(|(name, _)| name).collect();
    (!shared.is_empty()).then(|| Violation::new("host namespaces", shared.join(", ")))
}

pub(super) fn ports(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    // Upstream sorts them as texts.
    let mut ports = BTreeSet::new();
    let using = names(spec, |container| {
        let of_host = container.ports.iter().map(|port| port.host_port);
        let of_host: Vec<_> = of_host.filter(|port| *port != 0).collect();
        ports.extend(of_host.iter().map(ToString::to_string));
        !of_host.is_empty()
    });
    let count = ports.len();
    let ports: Vec<_> = ports.into_iter().collect();
    (!using.is_empty()).then(|| {
        let detail = format!(
            "{} {} {} {}",
            containers(&using),
            number("uses", "use", using.len()),
            number("hostPort", "hostPorts", count),
            ports.join(", ")
        );
        Violation::new("hostPort", detail)
    })
}

/// Probes and hooks of a container must be about its Pod: a kubelet calls them from the network of its node.
pub(super) fn probes(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let mut hosts = BTreeSet::new();
    let mut using = names(spec, |container| {
        let of_container = hosts_of(container);
        hosts.extend(of_container.iter().copied());
        !of_container.is_empty()
    });
    // Upstream keeps these in a set.
    using.sort_unstable();
    using.dedup();
    let (count, noun) = (hosts.len(), "probe or lifecycle host");
    (!using.is_empty()).then(|| {
        let detail = format!(
            "{} {} {} {}",
            containers(&using),
            number("uses", "use", using.len()),
            number(noun, "probe or lifecycle hosts", count),
            quoted(hosts)
        );
        Violation::new(noun, detail)
    })
}

/// Returns the hosts that the probes and hooks of a container name.
fn hosts_of<'a>(container: &Container<'a>) -> Vec<&'a str> {
    let of = |http: Option<&'a HttpGetAction>, tcp: Option<&'a TcpSocketAction>| {
        let http = http.map(|action| action.host.as_str());
        let tcp = tcp.map(|action| action.host.as_str());
        [http, tcp]
    };
    let probes = container.probes.into_iter().flatten();
    let of_probes = probes.flat_map(|probe| {
        let handler = &probe.handler;
        of(handler.http_get.as_ref(), handler.tcp_socket.as_ref())
    });
    let hooks = container.lifecycle.into_iter();
    let hooks = hooks.flat_map(|hooks| [&hooks.post_start, &hooks.pre_stop]);
    let of_hooks = hooks
        .flatten()
        .flat_map(|hook| of(hook.http_get.as_ref(), hook.tcp_socket.as_ref()));
    let all = of_probes.chain(of_hooks).flatten();
    all.filter(|host| !host.is_empty()).collect()
}
