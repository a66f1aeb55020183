//! Ends the connections of nodes whose Nodes were deleted.

use futures::StreamExt as _;
use setpoint_codec::kind_of;
use setpoint_proto::core::Node;
use setpoint_proto::{ApiError, EventType};

use super::attempts::repeat;
use crate::registry::{Filter, Registry, Start, WatchSpec};

impl Registry {
    /// Ends the connections with certificates of Nodes that are deleted. Runs until dropped.
    pub async fn end_connections_of_deleted_nodes(&self) {
        self.cache().synced().await;
        repeat("revoked-nodes", || self.follow_deletions_of_nodes()).await;
    }

    /// Looks at the connections whenever a Node is deleted, until a watch ends.
    async fn follow_deletions_of_nodes(&self) -> Result<(), ApiError> {
        let spec = WatchSpec {
            filter: Filter::all(kind_of::<Node>(), ""),
            start: Start::Now,
            bookmarks: false,
        };
        let mut events = self.cache().watch(spec).await?;
        let nodes = self.authenticator().nodes();
        nodes.end_revoked(None).await?;
        while let Some(event) = events.next().await {
            let event = event?;
            if event.r#type == EventType::Deleted {
                nodes.end_revoked(Some(&event.object.key.name)).await?;
            }
        }
        Ok(())
    }
}
