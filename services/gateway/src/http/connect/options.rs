//! The options of a request to connect, and its admission.

use setpoint_codec::{Kind, Object, kind_of};
use setpoint_proto::core::{
    Node, NodeProxyOptions, PodAttachOptions, PodExecOptions, PodPortForwardOptions,
    PodProxyOptions, Service, ServiceProxyOptions,
};
use setpoint_proto::setpoint::OpenContainer;
use setpoint_proto::{ApiError, Reason};

use super::ConnectRequest;
use crate::http::write_options;
use crate::registry::RequestContext;
use crate::request::Query;

const NO_STREAMS: &str = "you must specify at least 1 of stdin, stdout, stderr";

/// Admits a request with its options, which hooks see as an object and may change. Returns its context, and the
/// options.
///
/// # Errors
/// If a hook denies it.
pub(super) async fn admit(
    request: &ConnectRequest,
    options: Box<dyn Object>,
) -> Result<(RequestContext, Box<dyn Object>), ApiError> {
    let context = write_options::context(&request.query, &request.parts.headers)?;
    let context = context.as_user(&request.user);
    let target = request.route.target()?;
    let options = request.registry.connect(&context, &target, options).await?;
    Ok((context, options))
}

/// Returns the options of `exec` or `attach` as an object.
pub(super) fn of_container(query: &Query, is_exec: bool) -> Box<dyn Object> {
    let container = query.get("container").unwrap_or_default().to_owned();
    let [stdin, stdout, stderr, tty] =
        ["stdin", "stdout", "stderr", "tty"].map(|name| query.flag(name));
    match is_exec {
        true => Box::new(PodExecOptions {
            stdin,
            stdout,
            stderr,
            tty,
            container,
            command: query.all("command").map(str::to_owned).collect(),
        }),
        false => Box::new(PodAttachOptions {
            stdin,
            stdout,
            stderr,
            tty,
            container,
        }),
    }
}

/// Returns what to open. A terminal has one stream for all output.
///
/// # Errors
/// `BadRequest` if there is no stream, or no command to run.
pub(super) fn open(options: &dyn Object) -> Result<OpenContainer, ApiError> {
    let exec = options.downcast_ref::<PodExecOptions>();
    let mut open = OpenContainer::default();
    if let Some(exec) = exec {
        (open.stdin, open.stdout, open.stderr, open.tty) =
            (exec.stdin, exec.stdout, exec.stderr, exec.tty);
        open.container.clone_from(&exec.container);
        open.command.clone_from(&exec.command);
    }
    if let Some(attach) = options.downcast_ref::<PodAttachOptions>() {
        (open.stdin, open.stdout, open.stderr, open.tty) =
            (attach.stdin, attach.stdout, attach.stderr, attach.tty);
        open.container.clone_from(&attach.container);
    }
    open.stderr = open.stderr && !open.tty;
    if !(open.stdin || open.stdout || open.stderr) {
        return Err(ApiError::new(Reason::BadRequest, NO_STREAMS));
    }
    if exec.is_some() && open.command.iter().all(String::is_empty) {
        let message = "you must specify at least one command for the container";
        return Err(ApiError::new(Reason::BadRequest, message));
    }
    Ok(open)
}

/// Returns the options of `portforward` as an object.
pub(super) fn of_port_forward(ports: &[u16]) -> Box<dyn Object> {
    let ports = ports.iter().copied().map(i32::from).collect();
    Box::new(PodPortForwardOptions { ports })
}

/// Returns the ports of the options.
pub(super) fn ports_of(options: &dyn Object) -> Vec<u16> {
    let options = options.downcast_ref::<PodPortForwardOptions>();
    let ports = options.into_iter().flat_map(|options| &options.ports);
    let ports = ports.filter_map(|port| u16::try_from(*port).ok());
    ports.filter(|port| *port > 0).collect()
}

/// Returns the ports that the query names, separated by commas or as several parameters.
///
/// # Errors
/// `BadRequest` if one is no port.
pub(super) fn ports(query: &Query) -> Result<Vec<u16>, ApiError> {
    let all = query.all("ports").flat_map(|ports| ports.split(','));
    let ports = all.map(|port| {
        let parsed = port.parse::<u16>().ok().filter(|port| *port > 0);
        parsed.ok_or_else(|| {
            let message = format!("unable to parse {port:?} as a port");
            ApiError::new(Reason::BadRequest, message)
        })
    });
    ports.collect()
}

/// Returns the options of `proxy` of a Pod, a Service or a node as an object.
pub(super) fn of_proxy(kind: &Kind, path: &str) -> Box<dyn Object> {
    let path = path.to_owned();
    if *kind == *kind_of::<Service>() {
        return Box::new(ServiceProxyOptions { path });
    }
    match *kind == *kind_of::<Node>() {
        true => Box::new(NodeProxyOptions { path }),
        false => Box::new(PodProxyOptions { path }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T>(result: Result<T, ApiError>) -> String {
        result.err().map(|error| error.message).unwrap_or_default()
    }

    #[test]
    fn a_terminal_has_one_stream_of_output() {
        let open = |query: &str| open(&*of_container(&Query::parse(query), true));
        let all = open("command=sh&command=-c&stdin=true&stdout=1&stderr=true&tty=true").unwrap();
        assert!(all.stdin && all.stdout && all.tty && !all.stderr);
        assert_eq!(all.command, ["sh", "-c"]);
        assert!(open("command=sh&stdout=1&stderr=1").unwrap().stderr);
        assert_eq!(message(open("command=sh&stdout=false")), NO_STREAMS);
        assert_eq!(message(open("command=sh&tty=1&stderr=1")), NO_STREAMS);
        assert!(message(open("stdout=1")).contains("at least one command"));
        assert!(super::open(&*of_container(&Query::parse("stdout=1"), false)).is_ok());
    }

    #[test]
    fn ports_are_listed_or_repeated() {
        let ports = |query: &str| ports(&Query::parse(query));
        assert_eq!(ports("ports=80,443&ports=8080"), Ok(vec![80, 443, 8080]));
        assert_eq!(ports(""), Ok(vec![]));
        for query in ["ports=0", "ports=x", "ports=80,", "ports=70000", "ports="] {
            assert!(
                message(ports(query)).starts_with("unable to parse"),
                "{query}"
            );
        }
    }
}
