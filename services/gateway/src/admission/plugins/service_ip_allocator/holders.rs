//! The values that Services have, as they were read last: only Services that have changed since are decoded again.

use std::collections::HashSet;
use std::sync::Arc;

use setpoint_proto::ApiError;
use setpoint_proto::core::Service;
use setpoint_store::cache::Cached;

use super::{Assigned, assigned};
use crate::admission::reader::decode;

/// All Services, in the order of their keys.
#[derive(Default)]
pub(super) struct Holders(Vec<Holder>);

/// A Service, and its values.
struct Holder {
    service: Arc<Cached>,
    uid: String,
    values: Vec<Assigned>,
}

impl Holders {
    /// Makes these all Services, which are in the order of their keys.
    ///
    /// # Errors
    /// If one cannot be decoded: what it has is not free.
    pub(super) fn update(&mut self, all: Vec<Arc<Cached>>) -> Result<(), ApiError> {
        let mut before = std::mem::take(&mut self.0).into_iter().peekable();
        for service in all {
            while before
                .next_if(|holder| holder.service.key < service.key)
                .is_some()
            {}
            let same = before.next_if(|holder| Arc::ptr_eq(&holder.service, &service));
            self.0.push(match same {
                Some(holder) => holder,
                None => Holder::of(service)?,
            });
        }
        Ok(())
    }

    /// Returns the values of all Services except the one with this uid.
    pub(super) fn taken(&self, except: &str) -> HashSet<Assigned> {
        let others = self.0.iter().filter(|holder| holder.uid != except);
        others.flat_map(|holder| &holder.values).copied().collect()
    }
}

impl Holder {
    fn of(cached: Arc<Cached>) -> Result<Self, ApiError> {
        let service: Service = decode(&cached)?;
        Ok(Self {
            service: cached,
            values: assigned(&service.spec),
            uid: service.metadata.uid,
        })
    }
}
