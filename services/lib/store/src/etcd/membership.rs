//! The members of etcd, and their change: a new one is a learner without a vote, until it has caught up.

use etcd_client::{ClusterClient, MemberAddOptions};
use tonic::{Code, Status};

use super::{Settings, client};

/// The texts of etcd about a learner that has not caught up, and about a member that votes already.
const NOT_IN_SYNC: &str = "can only promote a learner member which is in sync with leader";
const NO_LEARNER: &str = "can only promote a learner member";
/// The text of etcd while a member does not reach others, or has reached them for a few seconds only.
const UNHEALTHY: &str = "unhealthy cluster";

/// A reason for which the members were not read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No member answers; the text is about each of them.
    #[error("no member of etcd answers: {0}")]
    Unreachable(String),
    /// etcd refuses the change until its members have reached each other for some seconds.
    #[error("members of etcd do not reach each other, or have not for long")]
    Unhealthy,
    /// etcd refuses the change.
    #[error("{0}")]
    Refused(String),
}

/// A member of etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: u64,
    /// Its name; empty for one that was added and has never started.
    pub name: String,
    /// The URLs at which other members reach it.
    pub peers: Vec<String>,
    /// The URLs at which clients reach it; none for one that has never started.
    pub clients: Vec<String>,
    /// Whether it has no vote yet.
    pub is_learner: bool,
}

/// A connection to one member, by which the members are changed.
pub struct Membership {
    client: ClusterClient,
}

impl Membership {
    /// Connects to the first of the endpoints at which a member with a vote answers.
    ///
    /// # Errors
    /// If none answers.
    pub async fn connect(settings: &Settings) -> Result<Self, Error> {
        let mut failures = Vec::new();
        for endpoint in &settings.endpoints {
            match Self::connect_to(endpoint, settings).await {
                Ok(membership) => return Ok(membership),
                Err(why) => failures.push(format!("{endpoint}: {why}")),
            }
        }
        Err(Error::Unreachable(failures.join("; ")))
    }

    async fn connect_to(endpoint: &str, settings: &Settings) -> Result<Self, String> {
        let settings = Settings {
            endpoints: vec![endpoint.to_owned()],
            ..settings.clone()
        };
        let client = client(&settings).await.map_err(|error| error.to_string())?;
        let membership = Self {
            client: client.cluster_client(),
        };
        // A learner refuses this.
        let listed = membership.list().await;
        listed
            .map(|_| membership)
            .map_err(|error| error.to_string())
    }

    /// Returns the members, as the one that answers knows them.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn list(&self) -> Result<Vec<Member>, Error> {
        listed(&mut self.client.clone()).await
    }

    /// Adds a learner, which others reach at this URL. Returns its id and all members with it.
    ///
    /// # Errors
    /// If etcd refuses it: there is a learner already, a member has this URL, or members that run are too few.
    pub async fn add_learner(&self, peer: &str) -> Result<(u64, Vec<Member>), Error> {
        let options = MemberAddOptions::new().with_is_learner();
        let mut client = self.client.clone();
        let added = client.member_add([peer.to_owned()], Some(options)).await;
        let added = added.map_err(refused)?;
        let id = added.member().map(etcd_client::Member::id);
        let id = id.ok_or_else(|| Error::Refused("etcd does not tell the new member".into()))?;
        Ok((id, added.member_list().iter().map(member).collect()))
    }

    /// Gives a learner a vote. Returns whether it has one now: not before it has caught up, and not if the answer is
    /// lost, which the next call tells.
    ///
    /// # Errors
    /// If etcd refuses it for another reason.
    pub async fn promote(&self, id: u64) -> Result<bool, Error> {
        match self.client.clone().member_promote(id).await {
            Ok(_) => Ok(true),
            Err(etcd_client::Error::GRpcStatus(status)) if is_passing(&status) => Ok(false),
            Err(error) => match refused(error) {
                Error::Refused(why) if why.ends_with(NOT_IN_SYNC) => Ok(false),
                Error::Refused(why) if why.ends_with(NO_LEARNER) => Ok(true),
                error => Err(error),
            },
        }
    }

    /// Removes a member, which ends when it learns of that.
    ///
    /// # Errors
    /// If etcd refuses it: there is no such member, or those that are left and run are too few.
    pub async fn remove(&self, id: u64) -> Result<(), Error> {
        let removed = self.client.clone().member_remove(id).await;
        removed.map(drop).map_err(refused)
    }
}

/// Returns the URLs at which clients reach the members that vote.
pub fn clients_of(members: &[Member]) -> Vec<String> {
    let voters = members.iter().filter(|member| !member.is_learner);
    voters.flat_map(|member| member.clients.clone()).collect()
}

/// Returns the members, as the one that answers knows them.
pub(super) async fn listed(client: &mut ClusterClient) -> Result<Vec<Member>, Error> {
    let listed = client.member_list().await.map_err(refused)?;
    Ok(listed.members().iter().map(member).collect())
}

fn member(member: &etcd_client::Member) -> Member {
    Member {
        id: member.id(),
        name: member.name().to_owned(),
        peers: member.peer_urls().to_vec(),
        clients: member.client_urls().to_vec(),
        is_learner: member.is_learner(),
    }
}

/// Returns whether the outcome of a call is not known.
fn is_passing(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled
    )
}

fn refused(error: etcd_client::Error) -> Error {
    match error {
        etcd_client::Error::GRpcStatus(status) if status.message().ends_with(UNHEALTHY) => {
            Error::Unhealthy
        }
        etcd_client::Error::GRpcStatus(status) => Error::Refused(status.message().to_owned()),
        other => Error::Refused(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_ask_members_that_vote() {
        let member = |number: u8, is_learner| Member {
            clients: vec![format!("https://10.0.0.{number}:2379")],
            is_learner,
            ..Member::default()
        };
        let unstarted = Member::default();
        let members = [
            member(1, false),
            member(2, true),
            unstarted,
            member(3, false),
        ];
        assert_eq!(
            clients_of(&members),
            ["https://10.0.0.1:2379", "https://10.0.0.3:2379"]
        );
    }
}
