//! The reasons why a runtime cannot start Pods.

/// The reason why a runtime cannot start Pods, or not connect them to its network, in the words of the kubelet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The condition `NetworkReady` is false, with this message.
    #[error(
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:{0}"
    )]
    Network(String),
    /// The condition `RuntimeReady` is false, with this message.
    #[error("container runtime not ready: RuntimeReady=false reason:RuntimeNotReady message:{0}")]
    Runtime(String),
    /// The runtime does not answer, with the error of the call.
    #[error("container runtime is down: {0}")]
    Down(String),
}
