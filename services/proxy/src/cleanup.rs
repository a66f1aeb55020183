//! `proxy --cleanup TABLE`: removes what a proxy has left: the table, and that of NetworkPolicies beside it.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::Settings;
use crate::nftables::{Nftables, Socket};
use crate::settings::is_table_name;

const FLAG: &str = "--cleanup";
/// `EX_USAGE` of sysexits.h.
const USAGE: u8 = 64;

/// Returns the name of the table if the arguments ask for its removal; `Some(None)` if it is missing.
pub fn requested(args: impl IntoIterator<Item = OsString>) -> Option<Option<String>> {
    let mut args = args.into_iter();
    let first = args.next().filter(|first| first == FLAG);
    first.map(|_| args.next().and_then(|table| table.into_string().ok()))
}

/// Removes a table, and the one beside it.
#[tokio::main(flavor = "current_thread")]
pub async fn cleanup(table: Option<String>) -> ExitCode {
    let Some(table) = table.filter(|table| is_table_name(table)) else {
        eprintln!("usage: proxy {FLAG} TABLE");
        return ExitCode::from(USAGE);
    };
    match remove(&table).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("proxy: the table {table} is not removed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn remove(table: &str) -> anyhow::Result<()> {
    let (socket, limit) = (Socket::open()?, Settings::default().transaction_timeout);
    Nftables::remove(&Settings::policy_table(table), &socket, limit).await?;
    Ok(Nftables::remove(table, &socket, limit).await?)
}
