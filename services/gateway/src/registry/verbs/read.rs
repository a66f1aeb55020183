//! `get`, `list` and `watch`: everything that changes nothing.

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

    /// What the filter lets through. Later pages show things as they stood on the first.
    ///
    /// # Errors
    /// `Expired` when later pages come too late, `BadRequest` for a foreign token.
    pub async fn list(
        &self,
        context: &RequestContext,
        params: &ListParams,
    ) -> Result<List, ApiError> {
        let filter = &params.filter;
        access::allow(&context.user, Verb::List, filter.kind(), filter.namespace())?;
        if !params.continue_token.is_empty() {
            let (revision, after) = read_token(&params.continue_token, filter)?;
            let revision = match revision {
                Some(revision) => revision,
                None => self.cache.newest().await?,
            };
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
            cut(&mut list, params.limit, filter);
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
            Reason::Expired => expired(after.as_ref()),
            _ => error,
        })?;
        let last = page.last.filter(|_| page.remaining > 0);
        let counts = last.is_some() && params.filter.selects_all();
        Ok(List {
            items: page.items,
            revision,
            continue_token: last
                .map(|last| write_token(&revision, &last))
                .unwrap_or_default(),
            remaining: i64::try_from(page.remaining).ok().filter(|_| counts),
        })
    }

    /// Changes, and perhaps first the state, as `spec` says.
    ///
    /// # Errors
    /// `Expired` when the history does not reach back to where it should start.
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

/// Leaves the first page, in the order in which the store would continue it.
fn cut(list: &mut List, limit: usize, filter: &Filter) {
    list.items
        .sort_by_cached_key(|item| keys::object(filter.kind(), &item.key));
    let remaining = i64::try_from(list.items.len() - limit).ok();
    list.remaining = remaining.filter(|_| filter.selects_all());
    list.items.truncate(limit);
    if let Some(last) = list.items.last() {
        list.continue_token = write_token(&list.revision, &last.key);
    }
}

/// Stands in a token for the newest revision, whatever it is by then.
const NEWEST: &str = "-1";

/// Opaque to everyone else: the revision of the first page, and the last key of this one.
fn write_token(revision: &dyn fmt::Display, last: &Key) -> String {
    format!("{revision}/{}/{}", last.namespace, last.name)
}

/// The revision to go on at (`None`: the newest), and the key to go on after, which is one that the filter looks at.
fn read_token(token: &str, filter: &Filter) -> Result<(Option<Revision>, Key), ApiError> {
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

/// The list cannot be had as it stood then; pages may go on after the key as things stand now.
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
    error.continue_token = Some(write_token(&NEWEST, after).into());
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
    fn a_token_leads_back_to_its_page() {
        let revision = Revision::from_raw(7);
        for (resource, namespace, key) in [
            ("pods", "", Key::new("production", "web")),
            ("pods", "production", Key::new("production", "web")),
            ("nodes", "", Key::new("", "node-1")),
        ] {
            let filter = filter(resource, namespace);
            let token = write_token(&revision, &key);
            let read = read_token(&token, &filter).unwrap();
            assert_eq!(read, (Some(revision), key.clone()));
            let token = write_token(&NEWEST, &key);
            assert_eq!(read_token(&token, &filter).unwrap(), (None, key));
        }
    }

    /// Checks F17.
    #[test]
    fn a_foreign_token_is_refused() {
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
            let error = read_token(token, &filter("pods", "a")).unwrap_err();
            assert_eq!(error.reason, Reason::BadRequest, "{token}");
        }
        assert!(read_token("1/a/b", &filter("nodes", "")).is_err());
    }
}
