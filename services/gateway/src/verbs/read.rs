//! The verbs `get`, `list` and `watch`.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_model::{Key, Revision};
use setpoint_proto::{ApiError, Reason};
use setpoint_store::cache::{Watch, WatchSpec};
use setpoint_store::keys;

use crate::registry::{
    AtLeast, Cached, Filter, ObjectResponse, Registry, RequestContext, Subresource, Target, errors,
};
use crate::write::scale;

use crate::computed;

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
        _context: &RequestContext,
        target: &Target,
        at: AtLeast,
    ) -> Result<ObjectResponse, ApiError> {
        if target.subresource.is_request() || target.subresource == Subresource::Finalize {
            return Err(errors::not_allowed());
        }
        let found = match target.kind.is_computed {
            true => self.computed(target).await?,
            false => self.cache().get(target.kind, &target.key(), at).await?,
        };
        let found = found.ok_or_else(|| errors::not_found(target.served, &target.name))?;
        let whole = ObjectResponse::from(&found);
        if target.keeps_version {
            return Ok(whole);
        }
        let whole = self.response_in_version(whole, target.served).await?;
        match target.subresource {
            Subresource::Scale => scale::read(whole),
            _ => Ok(whole),
        }
    }

    /// Returns the objects that the filter selects. Later pages are read at the revision of the first.
    ///
    /// # Errors
    /// `Expired` when the revision has been compacted, `BadRequest` for an invalid token, `StorageReadError` if an
    /// object cannot be decoded.
    pub async fn list(
        &self,
        _context: &RequestContext,
        params: &ListParams,
    ) -> Result<List, ApiError> {
        let filter = &params.filter;
        if filter.kind().is_computed {
            return self.list_computed(filter).await;
        }
        let now = Timestamp::now().as_second();
        if !params.continue_token.is_empty() {
            let token = Token::decode(&params.continue_token, filter)?;
            let (revision, began) = match token.revision {
                Some(_) if token.is_expired(now) => return Err(expired(Some(&token.after))),
                Some(revision) => (revision, token.began),
                None => (self.cache().newest().await?, now),
            };
            let after = Some(token.after);
            return self.list_at(params, revision, began, after).await;
        }
        let at = match params.at {
            RevisionMatch::Exact(revision) => {
                return self.list_at(params, revision, now, None).await;
            }
            RevisionMatch::NotOlderThan(at) => at,
        };
        let snapshot = self.cache().list(filter, at).await?;
        let snapshot = snapshot.complete(filter.kind())?;
        let mut list = List {
            items: snapshot.items,
            revision: snapshot.revision,
            ..List::default()
        };
        if params.limit > 0 && list.items.len() > params.limit {
            truncate(&mut list, params.limit, filter, now);
        }
        Ok(list)
    }

    /// Returns an object of a computed kind.
    async fn computed(&self, target: &Target) -> Result<Option<Arc<Cached>>, ApiError> {
        let key = target.key();
        let objects = computed::read(target.kind, self, &key).await?;
        Ok(objects.into_iter().find(|object| object.key == key))
    }

    /// Returns the objects of a computed kind, always as one page.
    async fn list_computed(&self, filter: &Filter) -> Result<List, ApiError> {
        let scope = Key::new(filter.namespace(), "");
        let mut items = computed::read(filter.kind(), self, &scope).await?;
        items.retain(|item| filter.matches(item));
        Ok(List {
            items,
            revision: self.cache().reached(),
            ..List::default()
        })
    }

    /// Returns a page at a revision, from the store. The first page was read at the time `began`.
    async fn list_at(
        &self,
        params: &ListParams,
        revision: Revision,
        began: i64,
        after: Option<Key>,
    ) -> Result<List, ApiError> {
        let page = self
            .cache()
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
                .map(|last| Token::encode(revision, began, last))
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
        _context: &RequestContext,
        spec: WatchSpec,
    ) -> Result<Watch, ApiError> {
        if spec.filter.kind().is_computed {
            return Err(errors::not_allowed());
        }
        self.cache().watch_complete(spec).await
    }
}

/// Truncates a list to its first page, in the order in which the store continues it.
fn truncate(list: &mut List, limit: usize, filter: &Filter, now: i64) {
    list.items
        .sort_by_cached_key(|item| keys::object(filter.kind(), &item.key));
    let remaining = i64::try_from(list.items.len() - limit).ok();
    list.remaining = remaining.filter(|_| filter.selects_all());
    list.items.truncate(limit);
    if let Some(last) = list.items.last() {
        list.continue_token = Token::encode(list.revision, now, last.key.clone());
    }
}

/// The revision of a token that continues at the newest revision.
const NEWEST: &str = "-1";

/// The time in seconds for which a list can be continued, whatever the store keeps for longer. Upstream, the revision
/// of a list is compacted five to ten minutes after it.
const LIFETIME: i64 = 300;

/// A decoded continue token.
#[derive(Debug, PartialEq, Eq)]
struct Token {
    /// The revision of the first page; `None` for the newest.
    revision: Option<Revision>,
    /// When the first page was read, in seconds since the epoch.
    began: i64,
    /// The last key of the page before.
    after: Key,
}

impl Token {
    /// Returns the token that continues a list at a revision.
    fn encode(revision: Revision, began: i64, after: Key) -> String {
        let token = Self {
            revision: Some(revision),
            began,
            after,
        };
        token.to_string()
    }

    /// Decodes a token, whose key must be in the scope of the filter.
    fn decode(token: &str, filter: &Filter) -> Result<Self, ApiError> {
        let invalid = |why: &str| {
            let message = format!("invalid continue token: continue key is not valid{why}");
            ApiError::new(Reason::BadRequest, message)
        };
        let parts: Vec<_> = token.splitn(4, '/').collect();
        let [revision, began, namespace, name] = parts[..] else {
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
        Ok(Self {
            revision,
            began: began.parse().map_err(|_| invalid(""))?,
            after: Key::new(namespace, name),
        })
    }

    fn is_expired(&self, now: i64) -> bool {
        now.saturating_sub(self.began) > LIFETIME
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.revision {
            Some(revision) => write!(f, "{revision}")?,
            None => f.write_str(NEWEST)?,
        }
        let Key {
            namespace, name, ..
        } = &self.after;
        write!(f, "/{}/{namespace}/{name}", self.began)
    }
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
    let token = Token {
        revision: None,
        began: 0,
        after: after.clone(),
    };
    error.continue_token = Some(token.to_string().into());
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
    fn a_token_is_decoded_as_it_was_encoded() {
        for (resource, namespace, after) in [
            ("pods", "", Key::new("production", "web")),
            ("pods", "production", Key::new("production", "web")),
            ("nodes", "", Key::new("", "node-1")),
        ] {
            for revision in [Some(Revision::from_raw(7)), None] {
                let after = after.clone();
                let token = Token {
                    revision,
                    began: 1_000,
                    after,
                };
                let filter = filter(resource, namespace);
                assert_eq!(Token::decode(&token.to_string(), &filter).unwrap(), token);
            }
        }
    }

    #[test]
    fn a_token_expires_some_minutes_after_the_first_page() {
        let text = Token::encode(Revision::from_raw(7), 1_000, Key::new("a", "b"));
        let token = Token::decode(&text, &filter("pods", "")).unwrap();
        assert!(!token.is_expired(1_000 + LIFETIME));
        assert!(token.is_expired(1_001 + LIFETIME));
        assert!(!token.is_expired(0), "of a gateway whose clock is ahead");
    }

    /// Checks F17.
    #[test]
    fn an_invalid_token_is_a_bad_request() {
        for token in [
            "x",
            "1/soon/a/b",
            "1",
            "1/5/a",
            "a/5/b/c",
            "0/5/a/b",
            "-2/5/a/b",
            "1/5/other/b",
            "1/5//b",
            "1/5/a/",
            "1/5/a/b/c",
            "1/5/a/../b",
        ] {
            let error = Token::decode(token, &filter("pods", "a")).unwrap_err();
            assert_eq!(error.reason, Reason::BadRequest, "{token}");
        }
        assert!(Token::decode("1/5/a/b", &filter("nodes", "")).is_err());
    }
}
