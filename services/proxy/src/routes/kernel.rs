//! The routes of the kernel that a proxy has made.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde::Deserialize;
use setpoint_model::Cidr;

use super::Routes;
use crate::command::{self, Error};

/// The number of the protocol of the routes, as `/etc/iproute2/rt_protos` has such; registered for no program.
const PROTOCOL: &str = "83";

/// The main table of routes of a network namespace.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// `ip`, with its first arguments.
    pub ip: Vec<String>,
    /// The time for one call of `ip`.
    pub timeout: Duration,
}

/// A route as `ip` prints it. Those of other programs may lack a gateway.
#[derive(Deserialize)]
struct Route {
    dst: String,
    gateway: Option<Ipv4Addr>,
}

impl Kernel {
    /// Returns the routes of proxies to ranges that lie `within` others.
    ///
    /// # Errors
    /// If `ip` fails.
    pub async fn routes(&self, within: &[Cidr]) -> Result<Routes, Error> {
        let args = [
            "-json", "-4", "route", "show", "table", "main", "protocol", PROTOCOL,
        ];
        let text = self.run(&args, String::new()).await?;
        let routes = parse(&text).map_err(|error| Error::Failed {
            program: self.ip.first().cloned().unwrap_or_default(),
            message: error.to_string(),
        })?;
        let ours = routes.into_iter().filter_map(|route| {
            let range: Cidr = route.dst.parse().ok()?;
            let is_ours = within.iter().any(|whole| range.is_within(*whole));
            Some((range, route.gateway.filter(|_| is_ours)?))
        });
        Ok(ours.collect())
    }

    /// Makes the `known` routes the `wanted` ones. A change that fails does not keep others from being made.
    ///
    /// # Errors
    /// If `ip` fails, or any change does. A route that another program has made to the same range is such a failure.
    pub async fn change(&self, known: &Routes, wanted: &Routes) -> Result<(), Error> {
        let batch = batch(known, wanted);
        match batch.is_empty() {
            true => Ok(()),
            false => self.run(&["-force", "-batch", "-"], batch).await.map(drop),
        }
    }

    /// Removes the routes of proxies to ranges that lie `within` others.
    ///
    /// # Errors
    /// As [`Self::change`].
    pub async fn remove(&self, within: &[Cidr]) -> Result<(), Error> {
        let known = self.routes(within).await?;
        self.change(&known, &Routes::new()).await
    }

    async fn run(&self, args: &[&str], input: String) -> Result<String, Error> {
        command::run(&self.ip, args, input, self.timeout).await
    }
}

/// Parses the routes as `ip` prints them: nothing at all if there are none.
fn parse(text: &str) -> serde_json::Result<Vec<Route>> {
    match text.trim() {
        "" => Ok(Vec::new()),
        text => serde_json::from_str(text),
    }
}

/// Returns the commands that make the `known` routes the `wanted` ones: a route that is new must not replace another
/// program's.
fn batch(known: &Routes, wanted: &Routes) -> String {
    let gone = known.keys().filter(|range| !wanted.contains_key(range));
    let gone = gone.map(|range| format!("route del {range} proto {PROTOCOL}\n"));
    let set = wanted.iter().filter_map(|(range, via)| {
        let verb = match known.get(range) {
            None => "add",
            Some(old) if old != via => "replace",
            Some(_) => return None,
        };
        Some(format!("route {verb} {range} via {via} proto {PROTOCOL}\n"))
    });
    gone.chain(set).collect()
}
