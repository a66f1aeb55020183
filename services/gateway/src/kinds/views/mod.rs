//! The views, one file each.

mod event;
mod horizontalpodautoscaler;
