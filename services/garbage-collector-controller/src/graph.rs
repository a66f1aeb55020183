//! The graph of owners and dependants by uid, built from the metadata of all objects.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use setpoint_controller::ObjectRef;
use setpoint_model::{Key, Meta};
use setpoint_proto::meta::OwnerReference;

use crate::item::{FOREGROUND, Item, ORPHAN, is_blocking};

/// The uid of an object, which all parts of the graph share.
pub(crate) type Uid = Arc<str>;

/// All objects by uid, and the dependants of each owner. It lags behind the store.
///
/// A node takes a few hundred bytes: of the references to owners, it keeps what decides whether to look at an object.
#[derive(Default)]
pub struct Graph {
    nodes: HashMap<Uid, Node>,
    /// The uids of dependants by the uid of their owner, which need not exist.
    dependants: HashMap<Uid, HashSet<Uid>>,
    kinds: HashSet<Arc<Kind>>,
}

/// The names of a kind.
#[derive(PartialEq, Eq, Hash)]
struct Kind {
    resource: String,
    kind: String,
}

struct Node {
    kind: Arc<Kind>,
    key: Key,
    owners: Box<[Link]>,
    deleting: bool,
    foreground: bool,
    orphan: bool,
}

/// A reference to an owner.
#[derive(Clone, PartialEq, Eq)]
struct Link {
    uid: Uid,
    blocks: bool,
    /// The hash of the kind and the name in the reference.
    names: u64,
    /// The hash of its `apiVersion`.
    version: u64,
}

/// The place of an object in the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether an object refers to it.
    pub has_dependants: bool,
    /// Whether an object blocks its deletion.
    pub is_blocked: bool,
    /// Whether objects that wait for their dependants form a cycle through it: then none of them can be deleted.
    pub in_cycle: bool,
}

impl Node {
    fn waits_for_dependants(&self) -> bool {
        self.deleting && self.foreground
    }

    /// Returns whether its deletion waits until its dependants are deleted or orphaned.
    fn is_held(&self) -> bool {
        self.deleting && (self.foreground || self.orphan)
    }

    fn blocks(&self, owner: &str) -> bool {
        let mut owners = self.owners.iter();
        owners.any(|link| &*link.uid == owner && link.blocks)
    }

    fn names(&self) -> u64 {
        hash(&(self.kind.kind.as_str(), self.key.name.as_str()))
    }
}

impl Graph {
    /// Adds or replaces an object. Returns the uids of objects to look at.
    pub fn put(&mut self, item: &Item) -> Vec<Arc<str>> {
        let uid = self.shared(&item.uid);
        let owners = item.owners.iter().map(|owner| self.link(owner)).collect();
        let node = Node {
            kind: self.kind(item),
            key: item.key.clone(),
            owners,
            deleting: item.deleting,
            foreground: item.has_finalizer(FOREGROUND),
            orphan: item.has_finalizer(ORPHAN),
        };
        let former = self.nodes.remove(&uid);
        let waited = former.as_ref().is_some_and(Node::waits_for_dependants);
        let former = former.map(|former| former.owners).unwrap_or_default();
        let mut woken = Vec::new();
        if former != node.owners {
            self.relink(&uid, &former, &node.owners);
            woken = self.released(&former, &node.owners);
        }
        let is_held = node.is_held();
        if node.waits_for_dependants() && !waited {
            woken.extend(self.living_dependants(&uid));
        }
        let changed = former != node.owners;
        self.nodes.insert(uid.clone(), node);
        if is_held || (changed && self.is_suspect(&uid)) {
            woken.push(uid);
        }
        woken
    }

    /// Removes an object. Returns the uids of objects to look at: its dependants, and owners that waited for it.
    pub fn remove(&mut self, uid: &str) -> Vec<Arc<str>> {
        let mut woken: Vec<_> = self.living_dependants(uid).collect();
        if let Some(node) = self.nodes.remove(uid) {
            let uid = self.shared(uid);
            self.relink(&uid, &node.owners, &[]);
            woken.extend(self.released(&node.owners, &[]));
        }
        woken
    }

    /// Returns the uids of all objects to look at, once the graph is complete.
    pub fn suspects(&self) -> impl Iterator<Item = &Arc<str>> {
        let is_suspect = |uid: &str, node: &Node| node.is_held() || self.is_suspect(uid);
        let nodes = self.nodes.iter();
        nodes.filter_map(move |(uid, node)| is_suspect(uid, node).then_some(uid))
    }

    /// Returns the owner that an object waits with to be deleted.
    pub(crate) fn waiting_owner(&self, uid: &str) -> Option<&Uid> {
        let waits = |uid: &str| self.nodes.get(uid).is_some_and(Node::waits_for_dependants);
        let mut owners = self.nodes.get(uid)?.owners.iter().map(|link| &link.uid);
        owners.find(|owner| waits(owner))
    }

    /// Returns a reference to an object.
    pub fn reference(&self, uid: &str) -> Option<ObjectRef> {
        let node = self.nodes.get(uid)?;
        Some(node.key.clone().in_resource(&node.kind.resource))
    }

    /// Returns the metadata, resource and kind of an object.
    pub(crate) fn identity(&self, uid: &str) -> Option<(Meta, (String, String))> {
        let Node { kind, key, .. } = self.nodes.get(uid)?;
        let meta = Meta {
            key: key.clone(),
            uid: uid.to_owned(),
            ..Meta::default()
        };
        Some((meta, (kind.resource.clone(), kind.kind.clone())))
    }

    /// Returns the place of an object.
    pub fn standing(&self, uid: &str) -> Standing {
        let mut dependants = self.dependants_of(uid);
        Standing {
            has_dependants: self.dependants.contains_key(uid),
            is_blocked: dependants.any(|(_, dependant)| dependant.blocks(uid)),
            in_cycle: self.is_in_cycle(uid),
        }
    }

    /// Returns whether an owner is in another namespace than an object that refers to it.
    pub fn is_foreign(&self, uid: &str, owner: &str) -> bool {
        let (node, owner) = (self.nodes.get(uid), self.nodes.get(owner));
        node.zip(owner)
            .is_some_and(|(node, owner)| is_elsewhere(node, owner))
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there is no object and no reference to one.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.dependants.is_empty()
    }

    fn is_in_cycle(&self, uid: &str) -> bool {
        let mut seen = HashSet::new();
        let mut next = vec![uid];
        while let Some(owner) = next.pop() {
            let waiting = self.dependants_of(owner).filter(|(_, dependant)| {
                dependant.blocks(owner) && dependant.waits_for_dependants()
            });
            for (dependant, _) in waiting {
                if &**dependant == uid {
                    return true;
                }
                if seen.insert(dependant) {
                    next.push(dependant);
                }
            }
        }
        false
    }

    /// Returns whether an object that is not being deleted may have to be deleted or changed: an owner is not known,
    /// waits for its dependants, or is another than the reference names.
    fn is_suspect(&self, uid: &str) -> bool {
        let Some(node) = self.nodes.get(uid).filter(|node| !node.deleting) else {
            return false;
        };
        node.owners
            .iter()
            .any(|link| match self.nodes.get(&link.uid) {
                None => true,
                Some(owner) => {
                    let differs = owner.names() != link.names;
                    owner.waits_for_dependants() || differs || is_elsewhere(node, owner)
                }
            })
    }

    fn dependants_of<'a>(&'a self, owner: &str) -> impl Iterator<Item = (&'a Uid, &'a Node)> {
        let dependants = self.dependants.get(owner).into_iter().flatten();
        dependants.filter_map(|uid| Some((uid, self.nodes.get(uid)?)))
    }

    fn living_dependants(&self, owner: &str) -> impl Iterator<Item = Uid> {
        let living = self.dependants_of(owner).filter(|(_, node)| !node.deleting);
        living.map(|(uid, _)| uid.clone())
    }

    /// Returns the owners that are held, and whose deletion an object with these links blocks no longer.
    fn released(&self, former: &[Link], now: &[Link]) -> Vec<Uid> {
        let still = |was: &Link| now.iter().any(|now| now.uid == was.uid && now.blocks);
        let free = former.iter().filter(|was| was.blocks && !still(was));
        let held = |link: &&Link| self.nodes.get(&link.uid).is_some_and(Node::is_held);
        free.filter(held).map(|link| link.uid.clone()).collect()
    }

    fn relink(&mut self, uid: &Uid, former: &[Link], now: &[Link]) {
        for link in former {
            if let Some(dependants) = self.dependants.get_mut(&link.uid) {
                dependants.remove(uid);
                if dependants.is_empty() {
                    self.dependants.remove(&link.uid);
                }
            }
        }
        for link in now {
            let dependants = self.dependants.entry(link.uid.clone()).or_default();
            dependants.insert(uid.clone());
        }
    }

    fn link(&self, reference: &OwnerReference) -> Link {
        Link {
            uid: self.shared(&reference.uid),
            blocks: is_blocking(reference),
            names: hash(&(reference.kind.as_str(), reference.name.as_str())),
            version: hash(&reference.api_version),
        }
    }

    /// Returns the copy of a uid that the graph has.
    fn shared(&self, uid: &str) -> Uid {
        let node = self.nodes.get_key_value(uid).map(|(uid, _)| uid);
        let owner = || self.dependants.get_key_value(uid).map(|(uid, _)| uid);
        node.or_else(owner).cloned().unwrap_or_else(|| uid.into())
    }

    fn kind(&mut self, item: &Item) -> Arc<Kind> {
        let kind = Arc::new(Kind {
            resource: item.resource.clone(),
            kind: item.kind.clone(),
        });
        match self.kinds.get(&kind) {
            Some(known) => known.clone(),
            None => {
                self.kinds.insert(kind.clone());
                kind
            }
        }
    }
}

fn is_elsewhere(dependant: &Node, owner: &Node) -> bool {
    !owner.key.namespace.is_empty() && owner.key.namespace != dependant.key.namespace
}

fn hash(names: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    names.hash(&mut hasher);
    hasher.finish()
}
