//! `get`, `list` and `watch`: everything that changes nothing.

use std::sync::Arc;

use setpoint_codec::Kind;
use setpoint_model::{Key, Revision};
use setpoint_proto::{ApiError, Reason};

use super::{Answer, AtLeast, Cached, Call, Filter, Registry, Subresource, Target, errors, scale};
use crate::access::{self, Verb};
use crate::store::cache::{Watch, WatchSpec};
use crate::store::keys;

/// As things stood when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Not earlier than asked.
    Least(AtLeast),
    /// At this very revision.
    Exact(Revision),
}

/// Which objects to list, and how many of them.
#[derive(Clone, Debug)]
pub struct ListParams {
    /// Which.
    pub filter: Filter,
    /// Entries per page; 0: all.
    pub limit: usize,
    /// From the page before; empty for the first.
    pub continue_token: String,
    /// As things stood when; of no meaning on later pages, which are of the same revision as the first.
    pub at: At,
}

/// A list, or a page of one.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// In the order of their keys.
    pub items: Vec<Arc<Cached>>,
    /// When this was true.
    pub revision: Revision,
    /// How to ask for the next page; empty when there is none.
    pub continue_token: String,
    /// How many objects follow, where that is known.
    pub remaining: Option<i64>,
}

impl Registry {
    /// One object, or its scale.
    ///
    /// # Errors
    /// `NotFound`, or those of a store that cannot be reached.
    pub async fn get(&self, call: &Call, target: &Target, at: AtLeast) -> Result<Answer, ApiError> {
        self.allow(call, Verb::Get, target)?;
        if target.subresource == Subresource::Binding {
            return Err(errors::not_allowed());
        }
        let found = self.cache.get(target.kind, &target.key(), at).await?;
        let found = found.ok_or_else(|| errors::not_found(target.kind, &target.name))?;
        let whole = Answer::from(&found);
        match target.subresource {
            Subresource::Scale => scale::answer(whole),
            _ => Ok(whole),
        }
    }

    /// What the filter lets through. Later pages show things as they stood on the first.
    ///
    /// # Errors
    /// `Expired` when later pages come too late, `BadRequest` for a foreign token.
    pub async fn list(&self, call: &Call, params: &ListParams) -> Result<List, ApiError> {
        let filter = &params.filter;
        access::allow(&call.user, Verb::List, filter.kind(), filter.namespace())?;
        if !params.continue_token.is_empty() {
            let (revision, after) = read_token(&params.continue_token)?;
            return self.past(params, revision, Some(after)).await;
        }
        let at = match params.at {
            At::Exact(revision) => return self.past(params, revision, None).await,
            At::Least(at) => at,
        };
        let snapshot = self.cache.list(filter, at).await?;
        let mut list = List {
            items: snapshot.items,
            revision: snapshot.revision,
            ..List::default()
        };
        if params.limit > 0 && list.items.len() > params.limit {
            cut(&mut list, params.limit, filter.kind());
        }
        Ok(list)
    }

    /// A page of the past, from the store.
    async fn past(
        &self,
        params: &ListParams,
        revision: Revision,
        after: Option<Key>,
    ) -> Result<List, ApiError> {
        let page = self
            .cache
            .page(&params.filter, revision, after.as_ref(), params.limit)
            .await;
        let page = page.map_err(|error| match error.reason {
            Reason::Expired => expired(),
            _ => error,
        })?;
        let last = page.last.filter(|_| page.remaining > 0);
        Ok(List {
            items: page.items,
            revision,
            continue_token: last
                .map(|last| write_token(revision, &last))
                .unwrap_or_default(),
            remaining: None,
        })
    }

    /// Changes, and perhaps first the state, as `spec` says.
    ///
    /// # Errors
    /// `Expired` when the history does not reach back to where it should start.
    pub async fn watch(&self, call: &Call, spec: WatchSpec) -> Result<Watch, ApiError> {
        access::allow(
            &call.user,
            Verb::Watch,
            spec.filter.kind(),
            spec.filter.namespace(),
        )?;
        self.cache.watch(spec).await
    }
}

/// Leaves the first page, in the order in which the store would continue it.
fn cut(list: &mut List, limit: usize, kind: &Kind) {
    list.items
        .sort_by_cached_key(|item| keys::object(kind, &item.key));
    list.remaining = i64::try_from(list.items.len() - limit).ok();
    list.items.truncate(limit);
    if let Some(last) = list.items.last() {
        list.continue_token = write_token(list.revision, &last.key);
    }
}

/// Opaque to everyone else: the revision of the first page, and the last key of this one.
fn write_token(revision: Revision, last: &Key) -> String {
    format!("{revision}/{}/{}", last.namespace, last.name)
}

fn read_token(token: &str) -> Result<(Revision, Key), ApiError> {
    let mut parts = token.splitn(3, '/');
    let parsed = (|| {
        let revision = parts.next()?.parse().ok()?;
        Some((revision, Key::new(parts.next()?, parts.next()?)))
    })();
    parsed.ok_or_else(|| {
        ApiError::new(
            Reason::BadRequest,
            format!("continue key is not valid: {token:?}"),
        )
    })
}

fn expired() -> ApiError {
    let message = "The provided continue parameter is too old to display a consistent list result. \
        You must start a new list without the continue parameter.";
    ApiError::new(Reason::Expired, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_back_to_its_page() {
        let revision = Revision::from_raw(7);
        for key in [Key::new("production", "web"), Key::new("", "node-1")] {
            assert_eq!(
                read_token(&write_token(revision, &key)).unwrap(),
                (revision, key)
            );
        }
    }

    #[test]
    fn a_foreign_token_is_refused() {
        for token in ["x", "1", "1/a", "a/b/c"] {
            assert_eq!(
                read_token(token).unwrap_err().reason,
                Reason::BadRequest,
                "{token}"
            );
        }
    }
}
