//! Removes what a proxy has left.
//!
//! ```text
//! proxy --cleanup TABLE           the table, and that of NetworkPolicies beside it
//! proxy --cleanup-routes RANGE    the routes to the Pods of other machines, whose addresses are in this range
//! ```

use std::ffi::OsString;
use std::process::ExitCode;

use setpoint_model::Cidr;

use crate::Settings;
use crate::nftables::{Nftables, Socket};
use crate::settings::is_table_name;

const TABLE: &str = "--cleanup";
const ROUTES: &str = "--cleanup-routes";
/// `EX_USAGE` of sysexits.h.
const USAGE: u8 = 64;

/// A request to remove a table or routes.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    Table(String),
    Routes(Cidr),
    /// The arguments ask for a removal, and do not say of what.
    Invalid,
}

/// Returns what the arguments ask to remove; `None` if nothing.
pub fn requested(args: impl IntoIterator<Item = OsString>) -> Option<Request> {
    let mut args = args.into_iter();
    let flag = args.next()?;
    let value = args.next().and_then(|value| value.into_string().ok());
    let request = match flag.to_str()? {
        TABLE => value.filter(|name| is_table_name(name)).map(Request::Table),
        ROUTES => value
            .and_then(|range| range.parse().ok())
            .map(Request::Routes),
        _ => return None,
    };
    Some(request.unwrap_or(Request::Invalid))
}

/// Removes a table and the one beside it, or routes.
#[tokio::main(flavor = "current_thread")]
pub async fn cleanup(request: Request) -> ExitCode {
    let (what, removed) = match request {
        Request::Table(table) => (format!("the table {table} is"), remove_table(&table).await),
        Request::Routes(range) => (
            format!("the routes to {range} are"),
            remove_routes(range).await,
        ),
        Request::Invalid => {
            eprintln!("usage: proxy {TABLE} TABLE | {ROUTES} RANGE");
            return ExitCode::from(USAGE);
        }
    };
    match removed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("proxy: {what} not removed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn remove_table(table: &str) -> anyhow::Result<()> {
    let (socket, limit) = (Socket::open()?, Settings::default().transaction_timeout);
    Nftables::remove(&Settings::policy_table(table), &socket, limit).await?;
    Ok(Nftables::remove(table, &socket, limit).await?)
}

async fn remove_routes(range: Cidr) -> anyhow::Result<()> {
    Ok(Settings::default().kernel().remove(&[range]).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_name_a_table_or_a_range() {
        let requested = |args: &[&str]| requested(args.iter().map(OsString::from));
        assert_eq!(requested(&[]), None);
        assert_eq!(requested(&["--config", "x"]), None);
        let table = Some(Request::Table("setpoint-1".into()));
        assert_eq!(requested(&["--cleanup", "setpoint-1"]), table);
        let routes = Some(Request::Routes("10.1.0.0/16".parse().unwrap()));
        assert_eq!(requested(&["--cleanup-routes", "10.1.0.0/16"]), routes);
        for args in [
            &["--cleanup"][..],
            &["--cleanup", "a b"],
            &["--cleanup-routes"],
            &["--cleanup-routes", "all"],
        ] {
            assert_eq!(requested(args), Some(Request::Invalid), "{args:?}");
        }
    }
}
