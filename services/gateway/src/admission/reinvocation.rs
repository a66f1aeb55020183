//! Decides which mutating hooks run again (`reinvocationPolicy`).

use std::collections::BTreeSet;

use serde_json::Value;

/// The hooks, webhooks or policies, that have to see the object again in a second pass.
#[derive(Debug, Default)]
pub(in crate::admission) struct Reinvocation {
    is_second: bool,
    /// Whether a hook has changed the object, so that there is a second pass.
    changed: bool,
    /// The hooks that were called, may be called again, and have seen every change since.
    called: BTreeSet<String>,
    /// The hooks that were called before others changed the object.
    again: BTreeSet<String>,
    /// The object at the end of the first pass, once it has ended.
    output: Option<Value>,
}

impl Reinvocation {
    /// Returns whether there has to be a second pass.
    pub(in crate::admission) const fn is_needed(&self) -> bool {
        self.changed && !self.is_second
    }

    /// Returns the number of the pass, from 0.
    pub(in crate::admission) const fn round(&self) -> u8 {
        self.is_second as u8
    }

    /// Begins a pass. If the object is not as the first one left it, hooks that may be called again are.
    pub(in crate::admission) fn begin(&mut self, object: &Value) {
        let Some(output) = &self.output else {
            return;
        };
        self.is_second = true;
        if object != output {
            self.require();
        }
    }

    /// Ends a pass with an object.
    pub(in crate::admission) fn end(&mut self, output: Value) {
        self.output = Some(output);
    }

    /// Returns whether a hook that matches is called in this pass.
    pub(in crate::admission) fn calls(&self, id: &str) -> bool {
        !self.is_second || self.again.contains(id)
    }

    /// Records the call of a hook.
    pub(in crate::admission) fn record(
        &mut self,
        id: &str,
        is_reinvocable: bool,
        has_changed: bool,
    ) {
        if has_changed {
            self.require_second();
        }
        if is_reinvocable {
            self.called.insert(id.to_owned());
        }
    }

    /// Requires a second pass, in which those that were called so far and may be called again are.
    pub(in crate::admission) fn require_second(&mut self) {
        self.changed = true;
        self.require();
    }

    fn require(&mut self) {
        self.again.append(&mut self.called);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn webhooks_that_were_called_before_a_change_are_called_again() {
        let mut passes = Reinvocation::default();
        passes.record("a", true, false);
        assert!(!passes.is_needed());
        passes.record("b", false, false);
        passes.record("c", true, true);
        passes.record("d", true, false);
        assert!(passes.is_needed());
        passes.end(json!(1));
        passes.begin(&json!(1));
        assert!(!passes.is_needed());
        assert_eq!(
            ["a", "b", "c", "d"].map(|id| passes.calls(id)),
            [true, false, false, false]
        );
        passes.record("a", true, true);
        assert_eq!(
            ["a", "c", "d"].map(|id| passes.calls(id)),
            [true, true, true]
        );
    }

    #[test]
    fn webhooks_are_called_again_after_the_gateway_has_changed_the_object() {
        let mut passes = Reinvocation::default();
        passes.record("a", true, true);
        passes.end(json!(1));
        passes.begin(&json!(2));
        assert!(passes.calls("a"));
    }
}
