//! The verbs `get`, `list` and `watch`.

use std::fmt;
use std::sync::Arc;

use setpoint_model::{Key, Revision, Verb};
use setpoint_proto::{ApiError, Reason};
use setpoint_store::cache::{Watch, WatchSpec};
use setpoint_store::keys;

use crate::registry::verbs::scale;
use crate::registry::{
    AtLeast, Cached, Filter, ObjectResponse, Registry, RequestContext, Subresource, Target, errors,
};

use crate::access;

/// The revision at which a list is read (Kubernetes: `resourceVersionMatch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevisionMatch {
    /// This one or a later one.
    NotOlderThan(AtLeast),
    /// This one.
    Exact(Revision),
}

/// The parameters of a list.
#[derive(Clone, Debug)]
pub struct ListParams {
    /// Selects the objects.
    pub filter: Filter,
    /// The largest number of objects on a page; 0 for no limit.
    pub limit: usize,
    /// The token of the previous page; empty for the first page.
    pub continue_token: String,
    /// The revision of the first page; later pages are read at the same one.
    pub at: RevisionMatch,
}

/// A list, or a page of one.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// The objects in the order of their keys.
    pub items: Vec<Arc<Cached>>,
    /// The revision at which the list was read.
    pub revision: Revision,
    /// The token of the next page; empty on the last page.
    pub continue_token: String,
    /// The number of objects on later pages, if known.
    pub remaining: Option<i64>,
}

impl Registry {
    /// Returns an object or its scale.
    ///
    /// # Errors
    /// `NotFound`, or errors of the store.
    pub async fn get(
        &self,
        context: &RequestContext,
        target: &Target,
        at: AtLeast,
    ) -> Result<ObjectResponse, ApiError> {
        self.allow(context, Verb::Get, target)?;
        if target.subresource == Subresource::Binding {
            return Err(errors::not_allowed());
        }
        let found = self.cache.get(target.kind, &target.key(), at).await?;
        let found = found.ok_or_else(|| errors::not_found(target.kind, &target.name))?;
        let whole = ObjectResponse::from(&found);
        match target.subresource {
            Subresource::Scale => scale::response(whole),
            _ => Ok(whole),
        }
    }

    /// Returns the objects that the filter selects. Later pages are read at the revision of the first.
    ///
    /// # Errors
    /// `Expired` when the revision has been compacted, `BadRequest` for an invalid token.
    pub async fn list(
        &self,
        context: &RequestContext,
        params: &ListParams,
    ) -> Result<List, ApiError> {
        let filter = &params.filter;
        access::allow(&context.user, Verb::List, filter.kind(), filter.namespace())?;
        if !params.continue_token.is_empty() {
            let (revision, after) = decode_token(&params.continue_token, filter)?;
            let revision = match revision {
                Some(revision) => revision,
                None => self.cache.newest().await?,
            };
            return self.list_at(params, revision, Some(after)).await;
        }
        let at = match params.at {
            RevisionMatch::Exact(revision) => return self.list_at(params, revision, None).await,
            RevisionMatch::NotOlderThan(at) => at,
        };
        let snapshot = self.cache.list(filter, at).await?;
        let mut list = List {
            items: snapshot.items,
            revision: snapshot.revision,
            ..List::default()
        };
        if params.limit > 0 && list.items.len() > params.limit {
            truncate(&mut list, params.limit, filter);
        }
        Ok(list)
    }

    /// Returns a page at a revision, from the store.
    async fn list_at(
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
            Reason::Expired => expired(after.as_ref()),
            _ => error,
        })?;
        let last = page.last.filter(|_| page.remaining > 0);
        let counts = last.is_some() && params.filter.selects_all();
        Ok(List {
            items: page.items,
            revision,
            continue_token: last
                .map(|last| encode_token(&revision, &last))
                .unwrap_or_default(),
            remaining: i64::try_from(page.remaining).ok().filter(|_| counts),
        })
    }

    /// Returns the stream of changes that `spec` selects, preceded by the existing objects if it asks for them.
    ///
    /// # Errors
    /// `Expired` when the start is older than the history of the cache.
    pub async fn watch(
        &self,
        context: &RequestContext,
        spec: WatchSpec,
    ) -> Result<Watch, ApiError> {
        access::allow(
            &context.user,
            Verb::Watch,
            spec.filter.kind(),
            spec.filter.namespace(),
        )?;
        self.cache.watch(spec).await
    }
}

/// Truncates a list to its first page, in the order in which the store continues it.
fn truncate(list: &mut List, limit: usize, filter: &Filter) {
    list.items
        .sort_by_cached_key(|item| keys::object(filter.kind(), &item.key));
    let remaining = i64::try_from(list.items.len() - limit).ok();
    list.remaining = remaining.filter(|_| filter.selects_all());
    list.items.truncate(limit);
    if let Some(last) = list.items.last() {
        list.continue_token = encode_token(&list.revision, &last.key);
    }
}

/// The revision of a token that continues at the newest revision.
const NEWEST: &str = "-1";

/// Returns a continue token: the revision of the first page and the last key of this one.
fn encode_token(revision: &dyn fmt::Display, last: &Key) -> String {
    format!("{revision}/{}/{}", last.namespace, last.name)
}

/// Returns the revision (`None` for the newest) and the last key of a continue token. The key must be in the scope of the
/// filter.
fn decode_token(token: &str, filter: &Filter) -> Result<(Option<Revision>, Key), ApiError> {
    let invalid = |why: &str| {
        let message = format!("invalid continue token: continue key is not valid{why}");
        ApiError::new(Reason::BadRequest, message)
    };
    let mut parts = token.splitn(3, '/');
    let (Some(revision), Some(namespace), Some(name)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(invalid(""));
    };
    let revision = match revision {
        NEWEST => None,
        text => Some(text.parse().map_err(|_| invalid(""))?),
    };
    if revision == Some(Revision::default()) {
        return Err(invalid(": incorrect encoded start resourceVersion"));
    }
    let of_namespace = filter.namespace().is_empty() || filter.namespace() == namespace;
    let is_key = !name.is_empty() && !name.contains('/');
    if !of_namespace || !is_key || filter.kind().namespaced == namespace.is_empty() {
        return Err(invalid(""));
    }
    Ok((revision, Key::new(namespace, name)))
}

/// Returns `Expired`; for a later page, with a token that continues after the key at the newest revision.
fn expired(after: Option<&Key>) -> ApiError {
    let Some(after) = after else {
        let message = "The resourceVersion for the provided list is too old.";
        return ApiError::new(Reason::Expired, message);
    };
    let message = "The provided continue parameter is too old to display a consistent list result. \
        You can start a new list without the continue parameter, or use the continue token in this response to \
        retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - \
        objects that were created, modified, or deleted between the time the first chunk was returned and now may show \
        up in the list.";
    let mut error = ApiError::new(Reason::Expired, message);
    error.continue_token = Some(encode_token(&NEWEST, after).into());
    error
}

#[cfg(test)]
mod tests {
    use setpoint_codec::kinds;

    use super::*;

    fn filter(resource: &str, namespace: &str) -> Filter {
        Filter::all(kinds().by_resource(resource).unwrap(), namespace)
    }

    #[test]
    fn a_token_is_decoded_to_its_revision_and_key() {
        let revision = Revision::from_raw(7);
        for (resource, namespace, key) in [
            ("pods", "", Key::new("production", "web")),
            ("pods", "production", Key::new("production", "web")),
            ("nodes", "", Key::new("", "node-1")),
        ] {
            let filter = filter(resource, namespace);
            let token = encode_token(&revision, &key);
            let read = decode_token(&token, &filter).unwrap();
            assert_eq!(read, (Some(revision), key.clone()));
            let token = encode_token(&NEWEST, &key);
            assert_eq!(decode_token(&token, &filter).unwrap(), (None, key));
        }
    }

    /// Checks F17.
    #[test]
    fn an_invalid_token_is_a_bad_request() {
        for token in [
            "x",
            "1",
            "1/a",
            "a/b/c",
            "0/a/b",
            "-2/a/b",
            "1/other/b",
            "1//b",
            "1/a/",
            "1/a/b/c",
            "1/a/../b",
        ] {
            let error = decode_token(token, &filter("pods", "a")).unwrap_err();
            assert_eq!(error.reason, Reason::BadRequest, "{token}");
        }
        assert!(decode_token("1/a/b", &filter("nodes", "")).is_err());
    }
}
