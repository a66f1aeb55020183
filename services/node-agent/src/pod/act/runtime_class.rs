//! The handler of the RuntimeClass of a Pod.

use setpoint_model::Key;
use setpoint_proto::core::Pod;
use setpoint_proto::node::RuntimeClass;
use setpoint_runtime::Runtime;
use setpoint_runtime::cri::Cri;

use super::{Error, Executor};

impl<R: Runtime> Executor<R> {
    /// Returns the runtime's handler for a Pod; empty for the default one. Other runtimes refuse Pods with a class.
    ///
    /// # Errors
    /// If there is no such class, which an Event says, or it cannot be read.
    pub(super) async fn runtime_handler(&self, pod: &Pod) -> Result<String, Error> {
        let class = pod.spec.runtime_class_name.as_deref().unwrap_or_default();
        if class.is_empty() || R::NAME != Cri::NAME {
            return Ok(String::new());
        }
        let key = Key::new("", class);
        match self.client_of(pod).get::<RuntimeClass>(&key).await {
            Ok(class) => Ok(class.handler),
            Err(error) => {
                self.events.sandbox_failed(pod, &error.message);
                Err(error.into())
            }
        }
    }
}
