//! Reads, which are repeated until they succeed or time out.

use std::future::Future;
use std::time::Duration;

use etcd_client::proto::{PbKeyValue, PbRangeResponse};
use etcd_client::{GetOptions, GetResponse, KvClient};
use setpoint_model::Revision;
use tokio::time::{sleep, timeout};

use super::error_class::ErrorClass;
use super::{Etcd, raw, revision};
use crate::{Entry, Error, Form, Page, Range, keys};

/// The delay after the first failure. It is doubled with each further one.
const BACKOFF: Duration = Duration::from_millis(10);
const MAX_BACKOFF: Duration = Duration::from_millis(320);

impl Etcd {
    pub(super) async fn read_one(&self, key: &str) -> Result<Option<Entry>, Error> {
        let page = self.range(key.to_owned(), GetOptions::new()).await?;
        Ok(page.kvs.into_iter().next().map(entry))
    }

    pub(super) async fn read_past(&self, key: &str, at: Revision) -> Result<Option<Entry>, Error> {
        // Revision 0 means the newest to etcd.
        let options = GetOptions::new().with_revision(raw(at).max(1));
        let page = self.range(key.to_owned(), options).await?;
        Ok(page.kvs.into_iter().next().map(entry))
    }

    pub(super) async fn read_revision(&self) -> Result<Revision, Error> {
        // A range of a key that does not exist: its only cost is the quorum round that makes it linearizable.
        let page = self
            .range(keys::ROOT.to_owned(), GetOptions::new().with_keys_only())
            .await?;
        Ok(revision_of(&page))
    }

    /// Reads a page. It has fewer entries than asked for if the response would exceed the message limit.
    pub(super) async fn read_page(&self, mut range: Range) -> Result<Page, Error> {
        loop {
            match self.try_page(&range).await {
                Err(Error::TooLarge) if range.limit > 1 => range.limit /= 2,
                page => return page,
            }
        }
    }

    async fn try_page(&self, range: &Range) -> Result<Page, Error> {
        let start = match &range.after {
            Some(key) => format!("{key}\0"),
            None => range.prefix.clone(),
        };
        let mut options = GetOptions::new()
            .with_range(end_of(&range.prefix))
            .with_limit(range.limit.try_into().unwrap_or(i64::MAX))
            .with_revision(range.at.map_or(0, raw));
        if range.keys_only {
            options = options.with_keys_only();
        }
        let page = self.range(start, options).await?;
        let counted = usize::try_from(page.count).unwrap_or_default();
        Ok(Page {
            revision: range.at.unwrap_or_else(|| revision_of(&page)),
            remaining: counted.saturating_sub(page.kvs.len()),
            entries: page.kvs.into_iter().map(entry).collect(),
        })
    }

    async fn range(&self, key: String, options: GetOptions) -> Result<PbRangeResponse, Error> {
        let call = |mut kv: KvClient| {
            let (key, options) = (key.clone(), options.clone());
            async move { kv.get(key, Some(options)).await }
        };
        let response: GetResponse = self.until_answered(call).await?;
        self.see(response.0.header.as_ref());
        Ok(response.0)
    }

    async fn until_answered<T, F>(&self, call: impl Fn(KvClient) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let mut last = Error::Timeout;
        let attempts = async {
            let mut backoff = BACKOFF;
            loop {
                match call(self.kv.clone()).await.map_err(ErrorClass::from) {
                    Ok(answer) => return Ok(answer),
                    Err(ErrorClass::Final(error)) => return Err(error),
                    Err(error_class) => last = error_class.into_error(),
                }
                sleep(backoff).await;
                backoff = (backoff * 2).min(MAX_BACKOFF);
            }
        };
        match timeout(self.timeout, attempts).await {
            Ok(answer) => answer,
            Err(_) => Err(last),
        }
    }
}

/// Returns the revision of the store at the time of the response.
fn revision_of(page: &PbRangeResponse) -> Revision {
    revision(page.header.as_ref().map_or(0, |header| header.revision))
}

pub(super) fn entry(kv: PbKeyValue) -> Entry {
    Entry {
        key: text(kv.key),
        value: kv.value.into(),
        revision: revision(kv.mod_revision),
        form: Form::default(),
    }
}

/// Decodes a key. Keys that are not UTF-8 are not of Setpoint, and are ignored by all readers.
pub(super) fn text(key: Vec<u8>) -> String {
    String::from_utf8(key)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the first key after all keys with the prefix.
fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}
