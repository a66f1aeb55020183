//! The processes that may join a cluster.

use anyhow::bail;
use clap::ValueEnum;

/// A process that a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Joining {
    /// A node agent
    Agent,
    /// A gateway
    Gateway,
    /// A controller or the scheduler
    Controller,
    /// A member of etcd
    Etcd,
}

impl Joining {
    /// Fails for a process that cannot join yet.
    ///
    /// # Errors
    /// It is none of an agent.
    pub fn check(self) -> anyhow::Result<()> {
        let name = match self {
            Self::Agent => return Ok(()),
            Self::Gateway => "gateway",
            Self::Controller => "controller",
            Self::Etcd => "etcd",
        };
        bail!(
            "only agents join so far, no {name}: `setpoint up` starts the others on their machine"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_join_and_the_others_are_refused_by_name() {
        assert!(Joining::Agent.check().is_ok());
        for (other, name) in [
            (Joining::Gateway, "no gateway"),
            (Joining::Controller, "no controller"),
            (Joining::Etcd, "no etcd"),
        ] {
            let error = other.check().unwrap_err().to_string();
            assert!(error.starts_with("only agents join so far, "), "{error}");
            assert!(error.contains(name), "{error}");
        }
    }
}
