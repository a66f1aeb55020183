//! The environment variables by which containers find Services. Pure.

use setpoint_proto::core::{Service, ServicePort};

/// Returns the variables of Services that have an address: those that the kubelet sets, and those of Docker's links.
pub fn variables<'a>(services: impl IntoIterator<Item = &'a Service>) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for service in services {
        let ip = service.spec.cluster_ip.as_str();
        if let (Some(first), false) = (service.spec.ports.first(), ["", "None"].contains(&ip)) {
            let prefix = variable(&service.metadata.name);
            let mut set = |name: String, value: String| variables.push((name, value));
            set(format!("{prefix}_SERVICE_HOST"), ip.to_owned());
            set(format!("{prefix}_SERVICE_PORT"), first.port.to_string());
            for port in service
                .spec
                .ports
                .iter()
                .filter(|port| !port.name.is_empty())
            {
                let name = format!("{prefix}_SERVICE_PORT_{}", variable(&port.name));
                set(name, port.port.to_string());
            }
            set(format!("{prefix}_PORT"), address(ip, first));
            for port in &service.spec.ports {
                let protocol = protocol(port);
                let of_port = format!("{prefix}_PORT_{}_{protocol}", port.port);
                set(of_port.clone(), address(ip, port));
                set(format!("{of_port}_PROTO"), protocol.to_ascii_lowercase());
                set(format!("{of_port}_PORT"), port.port.to_string());
                set(format!("{of_port}_ADDR"), ip.to_owned());
            }
        }
    }
    variables
}

fn variable(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

fn protocol(port: &ServicePort) -> &str {
    match port.protocol.as_str() {
        "" => "TCP",
        protocol => protocol,
    }
}

fn address(ip: &str, port: &ServicePort) -> String {
    let host = if ip.contains(':') {
        format!("[{ip}]")
    } else {
        ip.to_owned()
    };
    format!(
        "{}://{host}:{}",
        protocol(port).to_ascii_lowercase(),
        port.port
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str, ip: &str, ports: &[(&str, i32)]) -> Service {
        let mut service = Service::default();
        service.metadata.name = name.into();
        service.spec.cluster_ip = ip.into();
        let ports = ports.iter().map(|(name, port)| ServicePort {
            name: (*name).into(),
            port: *port,
            ..ServicePort::default()
        });
        service.spec.ports = ports.collect();
        service
    }

    #[test]
    fn a_service_has_the_variables_of_the_kubelet_and_of_links() {
        let service = service("my-db", "10.0.0.7", &[("sql", 5432)]);
        let found = variables([&service]);
        let expected = [
            ("MY_DB_SERVICE_HOST", "10.0.0.7"),
            ("MY_DB_SERVICE_PORT", "5432"),
            ("MY_DB_SERVICE_PORT_SQL", "5432"),
            ("MY_DB_PORT", "tcp://10.0.0.7:5432"),
            ("MY_DB_PORT_5432_TCP", "tcp://10.0.0.7:5432"),
            ("MY_DB_PORT_5432_TCP_PROTO", "tcp"),
            ("MY_DB_PORT_5432_TCP_PORT", "5432"),
            ("MY_DB_PORT_5432_TCP_ADDR", "10.0.0.7"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_service_without_an_address_or_a_port_has_none() {
        let services = [
            service("headless", "None", &[("a", 1)]),
            service("external", "", &[("a", 1)]),
            service("portless", "10.0.0.1", &[]),
        ];
        assert_eq!(variables(&services), []);
    }
}
