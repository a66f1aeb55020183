//! Reads: repeated until they succeed or the deadline comes.

use std::future::Future;
use std::time::Duration;

use etcd_client::proto::{PbKeyValue, PbRangeResponse};
use etcd_client::{GetOptions, GetResponse, KvClient};
use setpoint_model::Revision;
use tokio::time::{sleep, timeout};

use super::trouble::Trouble;
use super::{Etcd, raw, revision};
use crate::store::{Entry, Error, Page, Range, keys};

/// How long to wait after the first failure; doubled each time.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(320);

impl Etcd {
    pub(super) async fn read_one(&self, key: &str) -> Result<Option<Entry>, Error> {
        let page = self.range(key.to_owned(), GetOptions::new()).await?;
        Ok(page.kvs.into_iter().next().map(entry))
    }

    pub(super) async fn read_past(&self, key: &str, at: Revision) -> Result<Option<Entry>, Error> {
        // To etcd, revision 0 is the newest.
        let options = GetOptions::new().with_revision(raw(at).max(1));
        let page = self.range(key.to_owned(), options).await?;
        Ok(page.kvs.into_iter().next().map(entry))
    }

    pub(super) async fn read_revision(&self) -> Result<Revision, Error> {
        // A range of one key that does not exist: it costs etcd nothing but the round that makes it linearizable.
        let page = self
            .range(keys::ROOT.to_owned(), GetOptions::new().with_keys_only())
            .await?;
        Ok(revision_of(&page))
    }

    /// Reads a page, with fewer entries than asked for where an answer with all of them would be too large to be decoded.
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
        Ok(response.0)
    }

    async fn until_answered<T, F>(&self, call: impl Fn(KvClient) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let mut last = Error::Timeout;
        let attempts = async {
            let mut pause = PAUSE;
            loop {
                match call(self.kv.clone()).await.map_err(Trouble::from) {
                    Ok(answer) => return Ok(answer),
                    Err(Trouble::Final(error)) => return Err(error),
                    Err(trouble) => last = trouble.into_error(),
                }
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        };
        match timeout(self.timeout, attempts).await {
            Ok(answer) => answer,
            Err(_) => Err(last),
        }
    }
}

/// The newest revision, as the answer tells it.
fn revision_of(page: &PbRangeResponse) -> Revision {
    revision(page.header.as_ref().map_or(0, |header| header.revision))
}

pub(super) fn entry(kv: PbKeyValue) -> Entry {
    Entry {
        key: text(kv.key),
        value: kv.value.into(),
        revision: revision(kv.mod_revision),
    }
}

/// Our keys are text; one that is not is somebody else's, and is only ever passed over.
pub(super) fn text(key: Vec<u8>) -> String {
    String::from_utf8(key)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The first key after all those with the prefix.
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
