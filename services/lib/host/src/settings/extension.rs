//! Settings beside those of a service, of types that its own settings do not name.

use super::Error;
use super::layers::{Layers, Merged};

/// Settings that a process reads beside those of its service: for example those of the controllers that it hosts.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use setpoint_host::settings::{Error, Extension, Layers, Merged, Settings};
///
/// /// The settings of the garbage collection.
/// #[derive(Default, Serialize, Deserialize, schemars::JsonSchema)]
/// struct Collection {
///     /// Number of objects that are kept.
///     threshold: usize,
/// }
/// impl Settings for Collection {}
///
/// /// Reads the table `[collection]`.
/// struct Table;
///
/// impl Extension for Table {
///     type Settings = Collection;
///
///     fn declare(&self, layers: &mut Layers) {
///         layers.table::<Collection>("collection");
///     }
///
///     fn read(&self, merged: &Merged) -> Result<Collection, Error> {
///         merged.table("collection")
///     }
/// }
/// ```
pub trait Extension {
    /// The type of the settings.
    type Settings;

    /// Adds the settings with their defaults.
    fn declare(&self, layers: &mut Layers);

    /// Reads the settings that [`Self::declare`] has added.
    ///
    /// # Errors
    /// The first value that is not valid, in one line.
    fn read(&self, merged: &Merged) -> Result<Self::Settings, Error>;
}

/// No further settings.
impl Extension for () {
    type Settings = ();

    fn declare(&self, _: &mut Layers) {}

    fn read(&self, _: &Merged) -> Result<(), Error> {
        Ok(())
    }
}
