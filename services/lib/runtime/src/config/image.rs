//! Pull policies, and the origin of the image of a container.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An image pull policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pull {
    /// Pull before each start.
    Always,
    /// Pull if the image is not present.
    #[default]
    IfNotPresent,
    /// Never pull.
    Never,
}

/// Origin of the image of a started container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageOrigin {
    /// The runtime uses no images.
    Unused,
    /// The image was present.
    Present,
    /// The image was present, and the Pod has shown that it may use it, as far as the node verifies that.
    Accessible,
    /// The image was pulled for this container.
    Pulled(Pulled),
}

/// Statistics of an image pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// Duration of the pull.
    pub took: Duration,
    /// Duration of the pull including the wait for other pulls.
    pub waited: Duration,
    /// Size of the image.
    pub bytes: i64,
}

/// An image whose content is a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageVolume {
    /// The image, as named in the Pod's spec.
    pub reference: String,
    /// Image pull policy.
    pub pull: Pull,
    /// Name of the engine's volume with its content, once that is known.
    pub volume: String,
}
