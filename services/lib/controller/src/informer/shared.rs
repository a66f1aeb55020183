//! Informers that the controllers of one process share.

use std::any::Any;

use parking_lot::Mutex;

use crate::client::ListOptions;
use crate::{Client, Informer, View};

/// One informer for each type of view and selection of objects, as client-go's `SharedInformerFactory` has it: several
/// controllers that keep the same view of a kind have one copy and one watch.
///
/// They read as the user of the process, whichever controller asks for one first.
pub struct SharedInformers {
    client: Client,
    known: Mutex<Vec<(ListOptions, Box<dyn Any + Send>)>>,
}

impl SharedInformers {
    /// Returns no informers yet; those to come read by this client.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
        }
    }

    /// Returns an informer over the selected objects of the view's kind.
    pub fn informer<V: View>(&self, only: ListOptions) -> Informer<V> {
        let mut known = self.known.lock();
        let selected = known.iter().filter(|(selection, _)| *selection == only);
        let mut same = selected.filter_map(|(_, informer)| informer.downcast_ref::<Informer<V>>());
        if let Some(informer) = same.next() {
            return informer.share();
        }
        let informer = self.client.informer::<V>().only(only.clone());
        known.push((only, Box::new(informer.share())));
        informer
    }
}
