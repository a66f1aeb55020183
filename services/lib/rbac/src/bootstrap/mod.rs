//! The roles and bindings that every cluster has from its start, under upstream's names.
