//! The addresses that a network namespace answers for beside its own: a local route for a range makes the kernel answer
//! ARP for each address of it. The route outlives the process, as the table does.

use std::fs;
use std::time::Duration;

use setpoint_model::Cidr;

use crate::command::{self, Error};

/// The kernel's list of the links of the process's network namespace, after two lines of headings.
const LINKS: &str = "/proc/self/net/dev";
const HEADINGS: usize = 2;
const LOOPBACK: &str = "lo:";

/// The ranges that the process answers for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// `ip`, with its first arguments.
    pub ip: Vec<String>,
    /// The ranges; none by default.
    pub ranges: Vec<Cidr>,
    /// The time for one call of `ip`.
    pub timeout: Duration,
}

impl Answered {
    /// Makes the routes. Those that are there stay.
    ///
    /// # Errors
    /// If `ip` fails.
    pub async fn answer(&self) -> Result<(), Error> {
        for range in &self.ranges {
            let range = range.to_string();
            let args = ["route", "replace", "local", &range, "dev", "lo"];
            command::run(&self.ip, &args, String::new(), self.timeout).await?;
        }
        Ok(())
    }
}

/// Returns whether the network namespace of this process has no link but the loopback: the container that held it has
/// ended, and the engine has taken its links.
pub fn is_cut_off() -> bool {
    fs::read_to_string(LINKS).is_ok_and(|links| has_loopback_alone(&links))
}

fn has_loopback_alone(links: &str) -> bool {
    let mut links = links.lines().skip(HEADINGS).map(str::trim_start);
    links.all(|link| link.starts_with(LOOPBACK))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Inter-| Receive\n face |bytes\n";

    #[test]
    fn a_namespace_whose_links_are_gone_is_told_from_one_that_has_some() {
        let of = |links: &str| has_loopback_alone(&format!("{HEAD}{links}"));
        assert!(of("    lo: 1 2\n"));
        assert!(!of("    lo: 1 2\n  eth0: 1 2\n"));
        assert!(!of("  lope0: 1 2\n"));
    }
}
