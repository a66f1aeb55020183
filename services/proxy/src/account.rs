//! The record of what is programmed for a Service, for `setpoint why`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use setpoint_controller::Outcome;
use setpoint_controller::decision_log::Note;
use setpoint_proto::{ApiError, Reason};

use crate::{PortPlan, ServicePlan};

/// The largest number of endpoints of a port that are named.
const NAMED: usize = 8;

/// Returns a line for each port: its fronts and its endpoints. `simulated` are the addresses of endpoints that run
/// nothing.
pub fn lines(plan: &ServicePlan, simulated: &BTreeSet<Ipv4Addr>) -> Vec<String> {
    let lines = plan.ports.iter().map(|port| line(port, simulated));
    lines.collect()
}

fn line(port: &PortPlan, simulated: &BTreeSet<Ipv4Addr>) -> String {
    let id = &port.id;
    let name = match id.name.is_empty() {
        true => String::new(),
        false => format!(" {}", id.name),
    };
    let all: BTreeSet<_> = port.endpoints().collect();
    let mut line = format!("Program {}{name}: ", id.protocol.name());
    if all.is_empty() {
        line.push_str("connections are refused, for it has no endpoint");
        return line;
    }
    let named = all.iter().take(NAMED).map(|endpoint| {
        let nature = match simulated.contains(endpoint.ip()) {
            true => " (simulated: nothing answers)",
            false => "",
        };
        format!("{endpoint}{nature}")
    });
    line.push_str(&named.collect::<Vec<_>>().join(", "));
    let more = all.len().saturating_sub(NAMED);
    if more > 0 {
        // Writing to a String does not fail.
        let _ = write!(line, " and {more} more");
    }
    line
}

/// Ends the records of a transaction, each with its number of steps. It was made unless there is an error.
pub fn end(notes: Vec<(Note, usize)>, error: Option<&str>) {
    let failed = error.map(|error| ApiError::new(Reason::InternalError, error));
    for (note, steps) in notes {
        note.end(&Outcome::<()> {
            failed: failed.clone(),
            done: if failed.is_some() { 0 } else { steps },
            ..Outcome::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use setpoint_model::Key;

    use super::*;
    use crate::{PortId, Protocol};

    fn plan(name: &str, endpoints: u8) -> ServicePlan {
        let id = PortId {
            service: Key::new("default", "web"),
            name: name.into(),
            protocol: Protocol::Tcp,
        };
        let endpoints = (1..=endpoints).map(|n| ([10, 1, 0, n], 80).into());
        let cluster = endpoints.filter_map(|at| match at {
            std::net::SocketAddr::V4(at) => Some(at),
            std::net::SocketAddr::V6(_) => None,
        });
        let port = PortPlan {
            id,
            affinity: None,
            external: None,
            source_ranges: Vec::new(),
            cluster: cluster.collect(),
            local: Vec::new(),
            sites: Default::default(),
            fronts: Vec::new(),
        };
        ServicePlan {
            ports: vec![Arc::new(port)],
        }
    }

    #[test]
    fn lines_name_endpoints_and_say_which_are_simulated() {
        let none = BTreeSet::new();
        let refused = "Program tcp http: connections are refused, for it has no endpoint";
        assert_eq!(lines(&plan("http", 0), &none), [refused]);
        let simulated = [Ipv4Addr::new(10, 1, 0, 2)].into();
        let two = "Program tcp: 10.1.0.1:80, 10.1.0.2:80 (simulated: nothing answers)";
        assert_eq!(lines(&plan("", 2), &simulated), [two]);
        let many = lines(&plan("", 11), &none).remove(0);
        assert!(many.ends_with("10.1.0.8:80 and 3 more"), "{many}");
    }
}
