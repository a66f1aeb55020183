//! Values by small numbers, which are used again.

/// A vector whose items keep their places. The place of a removed item is that of a later one.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Adds an item. Returns its place.
    ///
    /// # Panics
    /// With more than 2³² items.
    pub(crate) fn insert(&mut self, item: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.items[place as usize] = Some(item);
            return place;
        }
        let place = u32::try_from(self.items.len()).expect("fewer items than memory holds");
        self.items.push(Some(item));
        place
    }

    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.items.get(place as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.items.get_mut(place as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, place: u32) -> Option<T> {
        let item = self.items.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(item)
    }
}
