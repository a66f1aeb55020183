//! Applies field selectors after webhook conversion: they select by fields of the requested version.

use std::collections::HashMap;

use setpoint_model::Key;
use setpoint_proto::EventType;

/// The objects of a watch, and whether its filter selects them. It holds the key of each object that the watch has
/// seen.
#[derive(Debug, Default)]
pub(super) struct Selection {
    selected: HashMap<Key, bool>,
}

impl Selection {
    /// Returns the type of the event that tells a watcher about the event of an object, which the filter now selects or
    /// not; `None` if it does not concern the watcher. An object that was not seen before may have been selected before
    /// the watch began.
    pub(super) fn follow(
        &mut self,
        key: &Key,
        event: EventType,
        is_selected: bool,
    ) -> Option<EventType> {
        let was = match event {
            EventType::Deleted => self.selected.remove(key),
            _ => self.selected.insert(key.clone(), is_selected),
        };
        match (event, was, is_selected) {
            (EventType::Deleted, Some(false), _) => None,
            (EventType::Deleted, _, _) => Some(EventType::Deleted),
            (EventType::Added, Some(true), false) => Some(EventType::Deleted),
            (EventType::Added, _, false) => None,
            (_, Some(false), true) => Some(EventType::Added),
            (_, Some(false), false) => None,
            (_, _, false) => Some(EventType::Deleted),
            (event, _, true) => Some(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use EventType::{Added, Deleted, Modified};

    use super::*;

    #[test]
    fn an_object_that_enters_or_leaves_the_selection_is_added_or_deleted() {
        let (mut selection, key) = (Selection::default(), Key::new("default", "a"));
        let mut follow = |event, is_selected| selection.follow(&key, event, is_selected);
        assert_eq!(follow(Added, false), None);
        assert_eq!(follow(Modified, false), None);
        assert_eq!(follow(Modified, true), Some(Added));
        assert_eq!(follow(Modified, true), Some(Modified));
        assert_eq!(follow(Modified, false), Some(Deleted));
        assert_eq!(follow(Deleted, true), None);
        assert_eq!(follow(Added, true), Some(Added));
        assert_eq!(follow(Deleted, false), Some(Deleted));
    }

    #[test]
    fn an_object_from_before_the_watch_may_have_been_selected() {
        let (mut selection, key) = (Selection::default(), Key::new("default", "a"));
        assert_eq!(selection.follow(&key, Modified, false), Some(Deleted));
        let other = Key::new("default", "b");
        assert_eq!(selection.follow(&other, Modified, true), Some(Modified));
        let third = Key::new("default", "c");
        assert_eq!(selection.follow(&third, Deleted, false), Some(Deleted));
    }
}
