//! Where the image of a container comes from.

use std::time::Duration;

/// Where the image of a container that was started came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: none is run.
    Nowhere,
    /// It was there.
    Machine,
    /// It was pulled for this container.
    Registry(Pulled),
}

/// An image that was pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// How long that took.
    pub took: Duration,
    /// The same, with the wait for other pulls.
    pub waited: Duration,
    /// How big it is.
    pub bytes: i64,
}
