//! The documents of the kinds that are served at present.
//!
//! Those of built-in kinds are built once. Those of custom kinds are replaced when a definition changes: when a
//! document is requested and the custom kinds are no longer those of the last request, the documents of groups and
//! versions with other definitions are new, and are built when they are requested themselves. So is the document of v2
//! when that of another server has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, OnceLock};

use parking_lot::Mutex;
use setpoint_codec::rest::path_of;
use setpoint_codec::{CustomKinds, Definition, Kind, kinds};

use super::document::Document;
use super::merge;
use super::part::{self, Part};
use super::swagger::Filtered;
use super::{v2, v3};

/// The documents of v3 of built-in kinds, by their path below `/openapi/v3/`.
static BUILT_IN: LazyLock<BTreeMap<String, Document>> = LazyLock::new(|| {
    let served = kinds().served();
    let versions = served.map(|kind| (kind.group.as_str(), kind.version.as_str()));
    let versions: BTreeSet<_> = versions.collect();
    let documents = versions.into_iter().map(|(group, version)| {
        let build = move |out: &mut dyn std::io::Write| {
            let document = v3::document_of(group, version);
            Ok(serde_json::to_writer(out, &document)?)
        };
        (path(group, version), Document::new(build))
    });
    documents.collect()
});

/// The part of v2 with the built-in kinds.
static BUILT_IN_PART: LazyLock<Part> = LazyLock::new(|| Part::of(v2::built_in_parts()));

fn path(group: &str, version: &str) -> String {
    path_of(group, version).trim_start_matches('/').to_owned()
}

/// A custom kind, as a document describes it.
pub(super) type Described = (&'static Kind, Arc<Definition>);

/// The documents, which follow the definitions of custom kinds.
#[derive(Default)]
pub struct Documents(Mutex<Arc<Published>>);

impl Documents {
    /// Returns the documents of the built-in kinds, of these, and of other servers.
    pub fn of(&self, custom: &Arc<CustomKinds>, others: Vec<Arc<Filtered>>) -> Arc<Published> {
        let mut current = self.0.lock();
        let are_same = are_same_servers(&current.others, &others);
        if !Arc::ptr_eq(&current.custom, custom) || !are_same {
            *current = Arc::new(current.following(custom, others));
        }
        current.clone()
    }
}

/// The documents of one set of kinds.
pub struct Published {
    custom: Arc<CustomKinds>,
    /// The custom kinds by the path of their document.
    versions: BTreeMap<String, Arc<GroupVersion>>,
    /// The documents of other servers about their versions of groups, by priority.
    others: Arc<[Arc<Filtered>]>,
    /// The document of v2 in JSON.
    pub v2_json: Document,
    /// The document of v2 in protobuf.
    pub v2_protobuf: Document,
}

impl Default for Published {
    fn default() -> Self {
        Self::new(Arc::default(), BTreeMap::new(), Vec::new())
    }
}

impl Published {
    fn new(
        custom: Arc<CustomKinds>,
        versions: BTreeMap<String, Arc<GroupVersion>>,
        others: Vec<Arc<Filtered>>,
    ) -> Self {
        let others: Arc<[_]> = others.into();
        let json = Arc::new(Parts {
            versions: versions.values().cloned().collect(),
            others: others.clone(),
            merged: OnceLock::new(),
        });
        let protobuf = json.clone();
        Self {
            custom,
            versions,
            others,
            v2_json: Document::new(move |out| part::write_json(out, json.all())),
            v2_protobuf: Document::new(move |out| part::write_protobuf(out, protobuf.all())),
        }
    }

    /// Returns the documents of other custom kinds. Those of unchanged kinds are the same as before.
    fn following(&self, custom: &Arc<CustomKinds>, others: Vec<Arc<Filtered>>) -> Self {
        let mut described = BTreeMap::<_, Vec<Described>>::new();
        for (kind, definition) in custom.served() {
            let path = path(&kind.group, &kind.version);
            let kinds = described.entry(path).or_default();
            kinds.push((kind, definition.clone()));
        }
        // As upstream, built-in kinds have precedence.
        described.retain(|path, _| !BUILT_IN.contains_key(path));
        let versions = described.into_iter().map(|(path, kinds)| {
            let known = self.versions.get(&path);
            let same = known.filter(|known| are_same(&known.kinds, &kinds));
            let version = same.cloned();
            (path, version.unwrap_or_else(|| GroupVersion::of(kinds)))
        });
        Self::new(custom.clone(), versions.collect(), others)
    }

    /// Returns the documents of v3 by their paths, in the order of the paths.
    pub fn v3(&self) -> impl Iterator<Item = (&String, &Document)> {
        let custom = self.versions.iter();
        let custom = custom.map(|(path, version)| (path, &version.v3));
        BUILT_IN.iter().chain(custom)
    }

    /// Returns the document of v3 at a path below `/openapi/v3/`.
    pub fn v3_at(&self, path: &str) -> Option<&Document> {
        let custom = || self.versions.get(path).map(|version| &version.v3);
        BUILT_IN.get(path).or_else(custom)
    }
}

fn are_same(known: &[Described], kinds: &[Described]) -> bool {
    let same = |(a, b): (&Described, &Described)| a.0 == b.0 && Arc::ptr_eq(&a.1, &b.1);
    known.len() == kinds.len() && known.iter().zip(kinds).all(same)
}

fn are_same_servers(known: &[Arc<Filtered>], others: &[Arc<Filtered>]) -> bool {
    let same = |(a, b): (&Arc<Filtered>, &Arc<Filtered>)| Arc::ptr_eq(a, b);
    known.len() == others.len() && known.iter().zip(others).all(same)
}

/// The parts of v2, which its two forms share.
struct Parts {
    versions: Vec<Arc<GroupVersion>>,
    others: Arc<[Arc<Filtered>]>,
    /// The paths and definitions that the documents of other servers add to those of this one.
    merged: OnceLock<Part>,
}

impl Parts {
    fn all(&self) -> impl Iterator<Item = &Part> + Clone {
        self.local().chain(self.merged())
    }

    fn local(&self) -> impl Iterator<Item = &Part> + Clone {
        let custom = self.versions.iter().map(|version| version.part());
        std::iter::once_with(|| &*BUILT_IN_PART).chain(custom)
    }

    fn merged(&self) -> Option<&Part> {
        let merge = || Part::of(std::iter::once(merge::merged(self.local(), &self.others)));
        let are_any = !self.others.is_empty();
        are_any.then(|| self.merged.get_or_init(merge))
    }
}

/// The custom kinds of a group and version.
struct GroupVersion {
    kinds: Arc<[Described]>,
    v3: Document,
    part: OnceLock<Part>,
}

impl GroupVersion {
    fn of(kinds: Vec<Described>) -> Arc<Self> {
        let kinds: Arc<[Described]> = kinds.into();
        let described = kinds.clone();
        let build = move |out: &mut dyn std::io::Write| {
            let document = v3::document_of_custom(&described);
            Ok(serde_json::to_writer(out, &document)?)
        };
        Arc::new(Self {
            kinds,
            v3: Document::new(build),
            part: OnceLock::new(),
        })
    }

    fn part(&self) -> &Part {
        let parts = || self.kinds.iter().map(v2::part_of_custom);
        self.part.get_or_init(|| Part::of(parts()))
    }
}
