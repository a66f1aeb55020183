//! A list that is read page by page during writes.

use std::collections::VecDeque;

use serde_json::Value;

/// The remaining items of a list at the revision of its first page.
pub struct Pages {
    pub path: String,
    pub token: String,
    pub limit: usize,
    /// The remaining items, in order.
    pub rest: VecDeque<Value>,
}

impl Pages {
    /// Checks a page against the list.
    pub fn check_page(&mut self, page: &Value) {
        let items = page["items"].as_array().expect("a list has items");
        assert!(
            items.len() <= self.limit,
            "{} items on a page of {}",
            items.len(),
            self.limit
        );
        for item in items {
            assert_eq!(Some(item), self.rest.pop_front().as_ref(), "{}", self.path);
        }
        self.token = page["metadata"]["continue"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(
            !self.token.is_empty() || self.rest.is_empty(),
            "{} ended early",
            self.path
        );
    }
}
