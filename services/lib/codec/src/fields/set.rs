//! A set of paths of fields, as a tree.

use super::element::PathElement;

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element, without duplicates.
    nodes: Vec<Node>,
}

/// The paths that begin with an element. It has itself or another path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) element: PathElement,
    /// Whether the path that ends here is in the set.
    pub(super) is_member: bool,
    /// The paths below.
    pub(super) below: FieldSet,
}

impl FieldSet {
    /// Returns the set of these paths of plain fields.
    pub fn of_fields(paths: &[&[&'static str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path = path.iter().map(|name| PathElement::field(*name));
            set.insert(path);
        }
        set
    }

    /// Returns the set with these nodes, which are different but need not be sorted. Empty ones are left out.
    pub(super) fn of_nodes(mut nodes: Vec<Node>) -> Self {
        nodes.retain(|node| node.is_member || !node.below.is_empty());
        if !nodes.is_sorted_by(|one, two| one.element <= two.element) {
            nodes.sort_by(|one, two| one.element.cmp(&two.element));
        }
        Self { nodes }
    }

    /// Returns the set with these nodes. Of several with the same element, the last has the paths below.
    pub(super) fn of_any_nodes(mut nodes: Vec<Node>) -> Self {
        nodes.sort_by(|one, two| one.element.cmp(&two.element));
        nodes.dedup_by(|next, kept| {
            let is_same = next.element == kept.element;
            if is_same {
                kept.is_member |= next.is_member;
                if !next.below.is_empty() {
                    kept.below = std::mem::take(&mut next.below);
                }
            }
            is_same
        });
        Self::of_nodes(nodes)
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns whether the set has no path.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a path.
    pub fn insert(&mut self, path: impl IntoIterator<Item = PathElement>) {
        let mut path = path.into_iter().peekable();
        let mut set = self;
        while let Some(element) = path.next() {
            let found = set
                .nodes
                .binary_search_by(|node| node.element.cmp(&element));
            let at = found.unwrap_or_else(|at| {
                let node = Node {
                    element,
                    is_member: false,
                    below: Self::default(),
                };
                set.nodes.insert(at, node);
                at
            });
            let node = &mut set.nodes[at];
            node.is_member |= path.peek().is_none();
            set = &mut node.below;
        }
    }

    /// Returns the node of an element.
    pub(super) fn node(&self, element: &PathElement) -> Option<&Node> {
        let found = self
            .nodes
            .binary_search_by(|node| node.element.cmp(element));
        found.ok().map(|at| &self.nodes[at])
    }

    /// Returns whether the set has this path of plain fields.
    pub fn has_field(&self, path: &[&'static str]) -> bool {
        let Some((last, parents)) = path.split_last() else {
            return false;
        };
        let mut set = self;
        for name in parents {
            match set.node(&PathElement::field(*name)) {
                Some(node) => set = &node.below,
                None => return false,
            }
        }
        let node = set.node(&PathElement::field(*last));
        node.is_some_and(|node| node.is_member)
    }

    /// Returns the paths that are in any of the sets. Merges them pairwise: there may be thousands.
    pub(super) fn union_of<'s>(sets: impl Iterator<Item = &'s Self>) -> Self {
        let mut sets: Vec<_> = sets.cloned().collect();
        while sets.len() > 1 {
            let pairs = sets.chunks(2).map(|pair| match pair {
                [one, two] => one.union(two),
                rest => rest.first().cloned().unwrap_or_default(),
            });
            sets = pairs.collect();
        }
        sets.pop().unwrap_or_default()
    }

    /// Returns the paths that are in one of the sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.extend(other.clone());
        all
    }

    /// Adds the paths of the other set.
    pub(super) fn extend(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        self.nodes.extend(other.nodes);
        // Both are sorted, which makes this a merge.
        self.nodes.sort_by(|one, two| one.element.cmp(&two.element));
        self.nodes.dedup_by(|next, kept| {
            let is_same = next.element == kept.element;
            if is_same {
                kept.is_member |= next.is_member;
                kept.below.extend(std::mem::take(&mut next.below));
            }
            is_same
        });
    }

    /// Returns the paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let nodes = self.nodes.iter().filter_map(|node| {
            let with = other.node(&node.element)?;
            let is_member = node.is_member && with.is_member;
            node.with(is_member, node.below.intersection(&with.below))
        });
        Self {
            nodes: nodes.collect(),
        }
    }

    /// Returns the paths that are not in the other set.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut left = self.clone();
        left.remove(other);
        left
    }

    /// Removes the paths of the other set.
    pub(super) fn remove(&mut self, other: &Self) {
        self.nodes.retain_mut(|node| {
            if let Some(removed) = other.node(&node.element) {
                node.is_member &= !removed.is_member;
                node.below.remove(&removed.below);
            }
            node.is_member || !node.below.is_empty()
        });
    }

    /// Returns the paths that are not in the other set and not below one of its paths.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let mut left = self.clone();
        left.remove_recursively(other);
        left
    }

    /// Removes the paths of the other set, and those below them.
    pub(super) fn remove_recursively(&mut self, other: &Self) {
        self.nodes.retain_mut(|node| {
            let Some(removed) = other.node(&node.element) else {
                return true;
            };
            node.below.remove_recursively(&removed.below);
            !removed.is_member && (node.is_member || !node.below.is_empty())
        });
    }

    /// Calls `visit` with the text of each path, for example `.spec.replicas`. The paths that end at an object come
    /// before those that go on.
    pub fn for_each(&self, visit: &mut impl FnMut(String)) {
        self.for_each_below("", visit);
    }

    fn for_each_below(&self, prefix: &str, visit: &mut impl FnMut(String)) {
        for node in self.nodes.iter().filter(|node| node.is_member) {
            visit(format!("{prefix}{}", node.element));
        }
        for node in self.nodes.iter().filter(|node| !node.below.is_empty()) {
            let prefix = format!("{prefix}{}", node.element);
            node.below.for_each_below(&prefix, visit);
        }
    }
}

impl Node {
    /// Returns a node of the same element, or `None` if it has no path.
    fn with(&self, is_member: bool, below: FieldSet) -> Option<Self> {
        (is_member || !below.is_empty()).then(|| Self {
            element: self.element.clone(),
            is_member,
            below,
        })
    }
}
